package plimsoll.stt;

import java.math.BigInteger;

/** How a request to inference ended. */
sealed interface Answer {
    /** The strict answer: exactly these fields. The 64-bit numbers are unsigned, hence no {@code long}. */
    record Inference(
            double rms,
            BigInteger zeroCrossings,
            long checksum,
            BigInteger samples,
            String transcript,
            BigInteger audioBytes)
            implements Answer {
        public Inference {
            if (!Double.isFinite(rms)
                    || checksum < 0
                    || checksum >>> Integer.SIZE != 0
                    || !isUnsigned64(zeroCrossings)
                    || !isUnsigned64(samples)
                    || !isUnsigned64(audioBytes)) {
                throw new IllegalArgumentException("a number is out of range");
            }
        }

        private static boolean isUnsigned64(BigInteger value) {
            return value.signum() >= 0 && value.bitLength() <= Long.SIZE;
        }
    }

    /** Why frames have no transcript. {@code status} is null where there was no HTTP answer. */
    record Failure(FailureKind kind, String message, Integer status) implements Answer {
        static Failure timeout() {
            return new Failure(FailureKind.TIMEOUT, "no answer from inference in time", null);
        }

        /** The connection could not be made, or it or the stream was lost before the answer was whole. */
        static Failure connection(String cause) {
            return new Failure(FailureKind.CONNECTION_RESET, "inference connection: " + cause, null);
        }

        /** An answer with any status but 200. */
        static Failure status(int status) {
            FailureKind kind =
                    switch (status / 100) {
                        case 4 -> status == 429 ? FailureKind.HTTP_429 : FailureKind.HTTP_4XX;
                        case 5 -> FailureKind.HTTP_5XX;
                        default -> FailureKind.PARSE_ERROR;
                    };
            return new Failure(kind, "inference answered with status " + status, status);
        }

        /** A 200 whose body is not the strict JSON. */
        static Failure parse(String cause) {
            return new Failure(FailureKind.PARSE_ERROR, "inference answer: " + cause, 200);
        }

        /** Frames that the overflow policy dropped. */
        static Failure overflow(long frames) {
            return new Failure(FailureKind.OVERFLOW, frames + " frames dropped: the input buffer is full", null);
        }
    }
}
