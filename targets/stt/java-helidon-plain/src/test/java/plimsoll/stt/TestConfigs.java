package plimsoll.stt;

import java.util.HashMap;
import java.util.Map;

/** Configurations for tests, by the names of the variables. */
final class TestConfigs {
    private TestConfigs() {}

    static Config of(String... namesAndValues) {
        Map<String, String> variables = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            variables.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        try {
            return Config.read(variables::get);
        } catch (ConfigException e) {
            throw new IllegalArgumentException(e);
        }
    }
}
