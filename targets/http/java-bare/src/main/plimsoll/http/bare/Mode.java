package plimsoll.http.bare;

import java.io.IOException;
import java.nio.channels.ServerSocketChannel;
import java.util.Arrays;
import java.util.Optional;

/** Which threads do the work: the one thing in which the four targets differ. */
enum Mode {
    VT("vt") {
        @Override
        void start(Server server, ServerSocketChannel listener) {
            new ThreadPerConnection(server, listener, Thread.ofVirtual()).start();
        }
    },
    PT("pt") {
        @Override
        void start(Server server, ServerSocketChannel listener) {
            new ThreadPerConnection(server, listener, Thread.ofPlatform()).start();
        }
    },
    LOOP("loop") {
        @Override
        void start(Server server, ServerSocketChannel listener) throws IOException {
            new SelectorLoop(server, listener, AnswerInLoop::new).start();
        }
    },
    VT_LOOP("vt-loop") {
        @Override
        void start(Server server, ServerSocketChannel listener) throws IOException {
            new SelectorLoop(server, listener, AnswerInThread::new).start();
        }
    };

    final String word;

    Mode(String word) {
        this.word = word;
    }

    static Optional<Mode> of(String word) {
        return Arrays.stream(values()).filter(mode -> mode.word.equals(word)).findFirst();
    }

    /** Accepts and serves connections in threads of its own. Called once for each worker, with a listener for it. */
    abstract void start(Server server, ServerSocketChannel listener) throws IOException;
}
