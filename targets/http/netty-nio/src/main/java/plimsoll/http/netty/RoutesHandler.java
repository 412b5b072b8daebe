package plimsoll.http.netty;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler.Sharable;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.util.AsciiString;
import java.nio.ByteBuffer;
import plimsoll.http.Checksum;
import plimsoll.http.HttpDate;
import plimsoll.http.Item;
import plimsoll.http.Metrics;
import plimsoll.http.Pattern;
import plimsoll.http.Route;

/** The routes, on the event loop. For connections of HTTP/1.1 and for streams of HTTP/2 alike. */
@Sharable
final class RoutesHandler extends SimpleChannelInboundHandler<FullHttpRequest> {
    private static final AsciiString PLAIN = AsciiString.cached("text/plain");
    private static final AsciiString BINARY = AsciiString.cached("application/octet-stream");
    private static final AsciiString JSON = AsciiString.cached("application/json");
    private static final AsciiString PROMETHEUS = AsciiString.cached(Metrics.CONTENT_TYPE);

    /** Outside the heap, so that the transports write it as it is. A slice of an array they would copy for each answer. */
    private static final ByteBuf PATTERN =
            Unpooled.unreleasableBuffer(Unpooled.directBuffer(Pattern.BYTES_MAX).writeBytes(Pattern.bytes()));

    private final ObjectMapper mapper = new ObjectMapper();
    private final Metrics metrics;

    RoutesHandler(Metrics metrics) {
        this.metrics = metrics;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) throws JsonProcessingException {
        metrics.request();
        HttpResponseStatus fault = faultOf(request);
        FullHttpResponse response = fault == null ? answer(request) : failure(fault);
        HttpHeaders headers = response.headers();
        headers.setInt(HttpHeaderNames.CONTENT_LENGTH, response.content().readableBytes());
        headers.set(HttpHeaderNames.DATE, HttpDate.now());
        if (request.method().equals(HttpMethod.HEAD)) {
            response = response.replace(Unpooled.EMPTY_BUFFER);
        }
        context.write(response);
    }

    /** Answers of requests that came in one read leave in one write. */
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush();
        context.fireChannelReadComplete();
    }

    /** What is wrong with a request, or null: what the codec found, and what it leaves to the application. */
    private static HttpResponseStatus faultOf(FullHttpRequest request) {
        if (request.decoderResult().isFailure()) {
            return request.decoderResult().cause() instanceof TooLongFrameException
                    ? HttpResponseStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                    : HttpResponseStatus.BAD_REQUEST;
        }
        if (request.protocolVersion().majorVersion() != 1) {
            return HttpResponseStatus.HTTP_VERSION_NOT_SUPPORTED;
        }
        boolean needsHost = request.protocolVersion().equals(HttpVersion.HTTP_1_1);
        return needsHost && !request.headers().contains(HttpHeaderNames.HOST) ? HttpResponseStatus.BAD_REQUEST : null;
    }

    private FullHttpResponse answer(FullHttpRequest request) throws JsonProcessingException {
        String uri = request.uri();
        int query = uri.indexOf('?');
        String path = query < 0 ? uri : uri.substring(0, query);
        return switch (Route.of(request.method().name(), path)) {
            case Route.Root _, Route.Health _ -> ok(PLAIN, text("ok"));
            case Route.Bytes(int size) -> ok(BINARY, PATTERN.retainedSlice(0, size));
            case Route.Sum _ -> ok(PLAIN, text(sum(request.content())));
            case Route.Json(long id) -> ok(JSON, Unpooled.wrappedBuffer(mapper.writeValueAsBytes(Item.of(id))));
            case Route.Counters _ -> ok(PROMETHEUS, text(metrics.text()));
            case Route.NotAllowed(String allowed) -> {
                FullHttpResponse response = failure(HttpResponseStatus.METHOD_NOT_ALLOWED);
                response.headers().set(HttpHeaderNames.ALLOW, allowed);
                yield response;
            }
            case Route.NotFound _ -> failure(HttpResponseStatus.NOT_FOUND);
        };
    }

    private static String sum(ByteBuf body) {
        Checksum checksum = new Checksum();
        for (ByteBuffer piece : body.nioBuffers()) {
            checksum.update(piece);
        }
        return checksum.toString();
    }

    private static ByteBuf text(String text) {
        return Unpooled.wrappedBuffer(text.getBytes(US_ASCII));
    }

    private static FullHttpResponse ok(AsciiString type, ByteBuf body) {
        return response(HttpResponseStatus.OK, type, body);
    }

    private static FullHttpResponse failure(HttpResponseStatus status) {
        return response(status, PLAIN, text(status.reasonPhrase()));
    }

    private static FullHttpResponse response(HttpResponseStatus status, AsciiString type, ByteBuf body) {
        FullHttpResponse response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, body);
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, type);
        return response;
    }
}
