package plimsoll.stt;

/** A variable whose value cannot be used: one line that names it. */
final class ConfigException extends Exception {
    private static final long serialVersionUID = 1;

    ConfigException(String name, String value, String remedy) {
        // The line stays one line, whatever the value is.
        super(name + "=\"" + value.replaceAll("\\p{Cntrl}", "?") + "\": " + remedy);
    }
}
