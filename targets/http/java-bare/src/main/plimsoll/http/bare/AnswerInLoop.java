package plimsoll.http.bare;

import java.io.IOException;
import java.nio.channels.SelectionKey;

/** The loop answers by itself. It must never wait: what a client does not take is written when it does. */
final class AnswerInLoop implements SelectorLoop.Answering {
    private final SelectorLoop loop;

    AnswerInLoop(SelectorLoop loop) {
        this.loop = loop;
    }

    @Override
    public boolean answer(SelectorLoop.Link link, Item item) throws IOException {
        link.connection.answer(item);
        if (link.connection.write()) {
            return true;
        }
        // A client that does not read its answers is not read from.
        link.key.interestOps(SelectionKey.OP_WRITE);
        return false;
    }

    @Override
    public boolean isBusy(SelectorLoop.Link link) {
        return false;
    }

    @Override
    public void onWritable(SelectorLoop.Link link) throws IOException {
        if (!link.connection.write()) {
            return;
        }
        link.dontWant(SelectionKey.OP_WRITE);
        if (link.connection.isLast()) {
            loop.end(link);
        } else {
            loop.proceed(link);
        }
    }
}
