// Which block a reader means by an address or a name.
import type { Blocks, Functions } from "../../api/graph.ts";

/** The block at an address, or around it, or else the nearest in front of it; of a name the start of its function. -1 if
 * nothing is meant. Without `blocks` addresses lead to the starts of functions. */
export function findPlace(text: string, functions: Functions, blocks: Blocks | null): number {
  const wanted = text.trim();
  const digits = /^(?:0x)?([0-9a-f]{1,16})$/i.exec(wanted);
  const named = functions.names.indexOf(wanted);
  if (named >= 0) {
    return functions.entryBlock[named];
  }
  if (digits && (wanted.startsWith("0x") || /\d/.test(wanted))) {
    const address = BigInt(`0x${digits[1]}`);
    const [addresses, toBlock] = blocks
      ? [blocks.address, (i: number) => blocks.firstBlock + i]
      : [functions.address, (i: number) => functions.entryBlock[i]];
    let best = -1;
    addresses.forEach((one, i) => {
      if (one <= address && (best < 0 || one > addresses[best])) {
        best = i;
      }
    });
    return best < 0 ? -1 : toBlock(best);
  }
  const lower = wanted.toLowerCase();
  const part = lower ? functions.names.findIndex((name) => name.toLowerCase().includes(lower)) : -1;
  return part < 0 ? -1 : functions.entryBlock[part];
}
