import java.util.HashMap;
import java.util.Map;

/** Sums into a map and recursive calls, as often as the first argument says. */
public class Merge {
    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    public static void main(String[] arguments) {
        long total = 0;
        for (int turn = 0; turn < Integer.parseInt(arguments[0]); turn++) {
            Map<String, Integer> sums = new HashMap<>();
            for (int i = 0; i < 20000; i++) sums.merge("k" + (i % 500), i, Integer::sum);
            for (int sum : sums.values()) total += sum;
            total += fib(25);
        }
        System.out.println(total);
    }
}
