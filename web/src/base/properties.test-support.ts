// How property tests search: the same examples each time, so that a test says the same twice; CLEW_FUZZ_FACTOR, which
// `make fuzz` sets, has them search so many times longer, from another seed each time.
import fc from "fast-check";

const factor = Number(process.env.CLEW_FUZZ_FACTOR ?? "1");

fc.configureGlobal(factor > 1 ? { numRuns: 100 * factor } : { seed: 20_261_123 });

/** Any character, halves of pairs among them, and often one that means something in markup or in tables.
 *  fast-check's own unit "binary" takes two seconds to make, in each file that uses it. */
export const anyCharacter: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(..."<>&\"',;=\n\r\t"),
  fc.nat(0x7f).map((code) => String.fromCodePoint(code)),
  fc.nat(0x10ffff).map((code) => String.fromCodePoint(code)),
);

/** For a property that takes longer or shorter than usual: so many examples. */
export function runs(usual: number): { numRuns: number } {
  return { numRuns: usual * factor };
}
