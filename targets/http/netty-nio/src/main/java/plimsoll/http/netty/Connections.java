package plimsoll.http.netty;

import io.netty.channel.Channel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import plimsoll.http.Metrics;

/** The connections that are open, with what all of them share. */
final class Connections {
    /** An event in the pipeline of each connection: end as soon as nothing is in flight. */
    enum Drain {
        BEGINS
    }

    private final ChannelGroup open = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
    private final Metrics metrics;
    private volatile boolean draining;

    Connections(Metrics metrics) {
        this.metrics = metrics;
    }

    Metrics metrics() {
        return metrics;
    }

    boolean isDraining() {
        return draining;
    }

    void add(Channel channel) {
        metrics.opened();
        channel.closeFuture().addListener(_ -> metrics.closed());
        open.add(channel);
    }

    /** Ends each connection once it has answered what is in flight. Returns when all have ended, or at the timeout. */
    void drain(Duration timeout) throws InterruptedException {
        draining = true;
        for (Channel channel : open) {
            channel.eventLoop().execute(() -> channel.pipeline().fireUserEventTriggered(Drain.BEGINS));
        }
        open.newCloseFuture().await(timeout.toMillis(), TimeUnit.MILLISECONDS);
    }
}
