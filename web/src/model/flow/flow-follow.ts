// The function that the replay's cursor is in, shown as it steps: an option of the function view.
import { computed, effect } from "@preact/signals";
import { recentBlocks } from "../recent.ts";
import { isPlaying } from "../replay.ts";
import { functionOfBlock, selectedFunction } from "../selected.ts";
import { functions } from "../session.ts";
import { settings } from "../settings.ts";
import { update } from "../view-state.ts";

/** The block that was executed last in front of the cursor; -1 if none is known. */
export const newestBlock = computed(() => recentBlocks.value?.[0]?.block ?? -1);

/** Select the function of the newest block whenever the cursor steps into another one, until what is returned is called.
 * Not while playing: there functions change faster than they can be drawn. */
export function followReplay(): () => void {
  return effect(() => {
    const [block, of] = [newestBlock.value, functions.value];
    if (!settings.value.followsReplay || isPlaying.value || block < 0 || !of) {
      return;
    }
    const index = functionOfBlock(of.firstBlock, block);
    if (index >= 0 && index !== selectedFunction.peek()) {
      update({ selection: { kind: "function", index } });
    }
  });
}
