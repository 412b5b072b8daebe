package plimsoll.http;

import java.util.HexFormat;
import java.util.zip.CRC32;

/** What {@code POST /sum} tells of a body, taken piece by piece. */
public final class Checksum {
    private static final HexFormat HEX = HexFormat.of();

    private final CRC32 crc = new CRC32();
    private long length;

    public void add(byte[] bytes, int offset, int count) {
        crc.update(bytes, offset, count);
        length += count;
    }

    public long length() {
        return length;
    }

    /** The CRC-32 in eight lower-case hexadecimal digits, a space, the length. */
    @Override
    public String toString() {
        return HEX.toHexDigits((int) crc.getValue()) + " " + length;
    }
}
