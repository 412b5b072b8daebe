package plimsoll.http.netty;

import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.codec.http.HttpUtil;

/** What a connection of HTTP/1.1 must keep in mind: how many answers it owes, and whether it ends after them. */
final class Http1ConnectionHandler extends ChannelDuplexHandler {
    private final Connections connections;

    /** Requests whose head has come and whose answer has not been written. */
    private int owed;

    /** A request said that it is the last one, or could not be read. */
    private boolean lastOne;

    Http1ConnectionHandler(Connections connections) {
        this.connections = connections;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (lastOne && message instanceof HttpRequest) {
            // What follows a request that was the last one is no request.
            io.netty.util.ReferenceCountUtil.release(message);
            return;
        }
        if (message instanceof HttpRequest request) {
            owed++;
            lastOne = !HttpUtil.isKeepAlive(request) || request.decoderResult().isFailure();
        }
        context.fireChannelRead(message);
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (message instanceof HttpResponse response
                && response.status().codeClass() != HttpStatusClass.INFORMATIONAL) {
            owed--;
            boolean ends = owed == 0 && (lastOne || connections.isDraining() || !HttpUtil.isKeepAlive(response));
            HttpUtil.setKeepAlive(response, !ends);
            if (ends) {
                promise = promise.unvoid().addListener(ChannelFutureListener.CLOSE);
            }
        }
        context.write(message, promise);
    }

    /** A client that does not read its answers is not read either. */
    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        context.channel().config().setAutoRead(context.channel().isWritable());
        context.fireChannelWritabilityChanged();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event == Connections.Drain.BEGINS) {
            if (owed == 0) {
                context.close();
            }
        } else {
            context.fireUserEventTriggered(event);
        }
    }
}
