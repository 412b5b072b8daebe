package plimsoll.http;

/** What a request asks for. For libraries that have no router of their own. */
public sealed interface Route {
    /** {@code GET /}. */
    record Root() implements Route {}

    /** {@code GET /bytes/N}. */
    record Bytes(int size) implements Route {}

    /** {@code POST /sum}. */
    record Sum() implements Route {}

    /** {@code GET /json/K}. */
    record Json(long id) implements Route {}

    /** {@code GET /healthz}. */
    record Health() implements Route {}

    /** {@code GET /metrics}. */
    record Counters() implements Route {}

    /** The path is known, but not with this method. */
    record NotAllowed(String allowed) implements Route {}

    record NotFound() implements Route {}

    Route ROOT = new Root();
    Route SUM = new Sum();
    Route HEALTH = new Health();
    Route COUNTERS = new Counters();
    Route NOT_FOUND = new NotFound();
    Route READ_ONLY = new NotAllowed("GET, HEAD");
    Route WRITE_ONLY = new NotAllowed("POST");

    /** The route of a request. {@code path} is without its query. */
    static Route of(String method, String path) {
        Route route = byPath(path);
        return switch (route) {
            case NotFound _ -> route;
            case Sum _ -> method.equals("POST") ? route : WRITE_ONLY;
            default -> method.equals("GET") || method.equals("HEAD") ? route : READ_ONLY;
        };
    }

    private static Route byPath(String path) {
        return switch (path) {
            case "/" -> ROOT;
            case "/sum" -> SUM;
            case "/healthz" -> HEALTH;
            case "/metrics" -> COUNTERS;
            default -> numbered(path);
        };
    }

    private static Route numbered(String path) {
        if (path.startsWith("/bytes/")) {
            int size = Pattern.size(path.substring("/bytes/".length()));
            return size < 0 ? NOT_FOUND : new Bytes(size);
        }
        if (path.startsWith("/json/")) {
            long id = Item.id(path.substring("/json/".length()));
            return id < 0 ? NOT_FOUND : new Json(id);
        }
        return NOT_FOUND;
    }
}
