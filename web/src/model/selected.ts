// What is selected, looked up: the function and the block.
import { computed } from "@preact/signals";
import { blocks, functions } from "./session.ts";
import { selection } from "./view-state.ts";

/** The function that is selected, or that the selected block is of; -1 for none. */
export const selectedFunction = computed(() => {
  const chosen = selection.value;
  const of = functions.value;
  if (!chosen || !of) {
    return -1;
  }
  if (chosen.kind === "function") {
    return chosen.index >= 0 && chosen.index < of.count ? chosen.index : -1;
  }
  return functionOfBlock(of.firstBlock, chosen.index);
});

/** The block that is selected; -1 for none. */
export const selectedBlock = computed(() => {
  const chosen = selection.value;
  const n = functions.value?.nBlocks ?? 0;
  return chosen?.kind === "block" && chosen.index >= 0 && chosen.index < n ? chosen.index : -1;
});

/** The function that a block is of, by where the blocks of functions begin; -1 if there is no such block. */
export function functionOfBlock(firstBlock: Uint32Array, block: number): number {
  if (block < 0 || block >= firstBlock[firstBlock.length - 1]) {
    return -1;
  }
  let low = 0;
  let high = firstBlock.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (firstBlock[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Whether all blocks are loaded, and not functions only. */
export const hasBlocks = computed(() => blocks.value !== null);
