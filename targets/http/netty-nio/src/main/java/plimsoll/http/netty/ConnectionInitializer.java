package plimsoll.http.netty;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.PrematureChannelClosureException;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http2.Http2CodecUtil;
import io.netty.handler.codec.http2.Http2FrameCodec;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.timeout.ReadTimeoutException;
import io.netty.handler.timeout.ReadTimeoutHandler;
import java.io.IOException;
import java.util.List;
import plimsoll.http.Config;

/** Builds the pipeline of a connection when its first bytes have told which protocol it speaks. */
final class ConnectionInitializer extends ChannelInitializer<Channel> {
    private static final int IDLE_TIMEOUT_S = 75;
    private static final int STREAMS_MAX = 256;

    private final Config config;
    private final Connections connections;
    private final RoutesHandler routes;

    ConnectionInitializer(Config config, Connections connections) {
        this.config = config;
        this.connections = connections;
        this.routes = new RoutesHandler(connections.metrics());
    }

    @Override
    protected void initChannel(Channel channel) {
        connections.add(channel);
        channel.pipeline()
                .addLast(new ReadTimeoutHandler(IDLE_TIMEOUT_S))
                .addLast(new ProtocolDetector())
                .addLast(new FailureHandler());
    }

    /** Looks for the preface of HTTP/2, and stops at the first byte that differs. */
    private final class ProtocolDetector extends ByteToMessageDecoder {
        @Override
        protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
            ByteBuf preface = Http2CodecUtil.connectionPrefaceBuf();
            try {
                int known = Math.min(in.readableBytes(), preface.readableBytes());
                if (!ByteBufUtil.equals(in, in.readerIndex(), preface, preface.readerIndex(), known)) {
                    speakHttp1(context);
                } else if (known == preface.readableBytes()) {
                    speakHttp2(context);
                }
            } finally {
                preface.release();
            }
        }

        private void speakHttp1(ChannelHandlerContext context) {
            String self = context.name();
            context.pipeline()
                    .addAfter(self, "codec", new HttpServerCodec())
                    .addAfter("codec", "connection", new Http1ConnectionHandler(connections))
                    .addAfter("connection", "aggregator", new HttpObjectAggregator(config.maxBodyBytes()))
                    .addAfter("aggregator", "routes", routes)
                    .remove(this);
        }

        private void speakHttp2(ChannelHandlerContext context) {
            String self = context.name();
            Http2FrameCodec codec = Http2FrameCodecBuilder.forServer()
                    .initialSettings(Http2Settings.defaultSettings().maxConcurrentStreams(STREAMS_MAX))
                    .gracefulShutdownTimeoutMillis(config.drainTimeout().toMillis())
                    .build();
            context.pipeline()
                    .addAfter(self, "codec", codec)
                    .addAfter("codec", "streams", new Http2MultiplexHandler(new StreamInitializer()))
                    .addAfter("streams", "drain", new Http2DrainHandler())
                    .remove(this);
        }
    }

    private final class StreamInitializer extends ChannelInitializer<Channel> {
        @Override
        protected void initChannel(Channel stream) {
            ChannelPipeline pipeline = stream.pipeline();
            pipeline.addLast(new Http2StreamFrameToHttpObjectCodec(true))
                    .addLast(new HttpObjectAggregator(config.maxBodyBytes()))
                    .addLast(routes)
                    .addLast(new FailureHandler());
        }
    }

    /** Netty's HTTP/2 codec knows how to end: a close sends GOAWAY and waits for the streams that are open. */
    private static final class Http2DrainHandler extends ChannelInboundHandlerAdapter {
        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event == Connections.Drain.BEGINS) {
                context.channel().close();
            } else {
                context.fireUserEventTriggered(event);
            }
        }
    }

    /** The end of each pipeline: a connection or stream that fails is closed. */
    private static final class FailureHandler extends ChannelInboundHandlerAdapter {
        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            // Clients that vanish or idle are no news.
            boolean clientsDoing = cause instanceof IOException
                    || cause instanceof ReadTimeoutException
                    || cause instanceof PrematureChannelClosureException;
            if (!clientsDoing) {
                System.err.println("a connection failed: " + cause);
            }
            context.close();
        }
    }
}
