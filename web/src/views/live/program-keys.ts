// The keys that command the program, while it is looked at as it runs.
import { registerKeys } from "../../model/keys.ts";
import { breakHere, moveThread, pauseOrContinue } from "../../model/live/program.ts";

/** Make the keys known; what is returned takes them back. */
export function registerProgramKeys(): () => void {
  return registerKeys("Program that runs", [
    { key: "F8", what: "Pause the program, or continue it", run: pauseOrContinue },
    { key: "F9", what: "Step the chosen thread by one instruction", run: () => moveThread("step") },
    { key: "F10", what: "Step it over a call", run: () => moveThread("next") },
    { key: "F2", what: "Break at the selected block", run: breakHere },
  ]);
}
