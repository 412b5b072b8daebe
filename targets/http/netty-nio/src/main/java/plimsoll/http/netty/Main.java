package plimsoll.http.netty;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.Version;
import java.util.Map;
import plimsoll.http.Config;
import plimsoll.http.Metrics;
import plimsoll.http.Shutdown;
import plimsoll.http.Startup;

/** Netty on the JDK's selectors ({@code netty-nio}), or on its native epoll transport ({@code netty-epoll}). */
public final class Main {
    private static final int BACKLOG = 4096;

    private Main() {}

    /** What carries the bytes. */
    private record Transport(IoHandlerFactory handlers, Class<? extends ServerChannel> listener) {
        static Transport of(String name) {
            return switch (name) {
                case "netty-nio" -> new Transport(NioIoHandler.newFactory(), NioServerSocketChannel.class);
                case "netty-epoll" -> new Transport(EpollIoHandler.newFactory(), EpollServerSocketChannel.class);
                default -> throw new IllegalArgumentException("no such server: " + name);
            };
        }
    }

    public static void main(String[] args) throws InterruptedException {
        String name = args[0];
        Config config = Config.fromEnvironment();
        Startup.print(
                name,
                config,
                Map.of(
                        "netty",
                        Version.identify().get("netty-codec-http").artifactVersion(),
                        "jackson-databind",
                        com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION.toString()));
        Transport transport = Transport.of(name);
        Connections connections = new Connections(new Metrics());
        EventLoopGroup acceptor = new MultiThreadIoEventLoopGroup(1, transport.handlers());
        EventLoopGroup workers = new MultiThreadIoEventLoopGroup(config.workers(), transport.handlers());
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(acceptor, workers)
                .channel(transport.listener())
                .option(ChannelOption.SO_BACKLOG, BACKLOG)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ConnectionInitializer(config, connections));
        try {
            Channel listener = bootstrap.bind("0.0.0.0", config.port()).sync().channel();
            Shutdown.onSigterm(config, timeout -> {
                listener.close().sync();
                connections.drain(timeout);
            });
        } catch (Exception e) {
            // Netty throws what bind met, checked or not.
            Shutdown.failed(e);
        }
    }
}
