package plimsoll.http;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.zip.CRC32;

/** What {@code POST /sum} answers: the CRC-32 of a body, and its length. The body may come in pieces. */
public final class Checksum {
    private final CRC32 crc = new CRC32();
    private long length;

    public void update(ByteBuffer piece) {
        length += piece.remaining();
        crc.update(piece);
    }

    public void update(byte[] piece, int offset, int count) {
        length += count;
        crc.update(piece, offset, count);
    }

    /** How much has come until now. */
    public long length() {
        return length;
    }

    @Override
    public String toString() {
        return HexFormat.of().toHexDigits((int) crc.getValue()) + " " + length;
    }
}
