import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.regex.Pattern;

/** What Java says: a line of hex texts (pattern, then names) in, one of 1 (matches) and 0 for each name out, or "refused". */
public class RegexOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(answer(line.split(",", -1)));
        }
        out.flush();
    }

    private static String answer(String[] texts) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(text(texts[0]));
        } catch (IllegalArgumentException | IndexOutOfBoundsException refused) {
            return "refused";
        }
        StringBuilder found = new StringBuilder();
        try {
            for (int index = 1; index < texts.length; index++) {
                found.append(pattern.matcher(text(texts[index])).matches() ? '1' : '0');
            }
        } catch (NullPointerException broken) {
            return "broken";  // some odd classes such as [a[b]&&&] get past the compiler
        }
        return found.toString();
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_16BE);
    }
}
