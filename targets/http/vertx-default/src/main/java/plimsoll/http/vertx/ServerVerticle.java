package plimsoll.http.vertx;

import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.http.HttpServer;
import java.util.List;
import plimsoll.http.Config;

/** A server on the event loop that this instance gets. Instances share the port, and Vert.x spreads connections over them. */
final class ServerVerticle extends VerticleBase {
    private final Config config;
    private final Routes routes;
    private final List<HttpServer> servers;

    ServerVerticle(Config config, Routes routes, List<HttpServer> servers) {
        this.config = config;
        this.routes = routes;
        this.servers = servers;
    }

    @Override
    public Future<?> start() {
        HttpServer server =
                vertx.createHttpServer().connectionHandler(routes::connection).requestHandler(routes::request);
        servers.add(server);
        return server.listen(config.port(), "0.0.0.0");
    }
}
