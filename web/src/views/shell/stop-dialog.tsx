// Asks whether the server is to be stopped, and what stands in the page's place once it was.
import { useState } from "preact/hooks";
import { stopServer, traceNames } from "../../model/session.ts";
import { openDialog } from "../../model/shell-state.ts";
import { Dialog, DialogHead } from "./dialog.tsx";

export function StopDialog() {
  const [state, setState] = useState<{ isAsked: boolean; failure: string | null }>({ isAsked: false, failure: null });
  const stop = () => {
    setState({ isAsked: true, failure: null });
    stopServer()
      .then(() => (openDialog.value = null))
      .catch((error: unknown) =>
        setState({ isAsked: false, failure: error instanceof Error ? error.message : String(error) }),
      );
  };
  return (
    <Dialog name="stop" title="Stop the viewer">
      <DialogHead title="Stop the viewer" />
      <p>This ends clew view: no page that it serves can ask it for anything more. The traces stay as they are.</p>
      {state.failure !== null && (
        <p class="error" role="alert">
          {state.failure}
        </p>
      )}
      <div class="dialog-foot">
        <button type="button" onClick={() => (openDialog.value = null)}>
          Go on looking
        </button>
        <button type="button" class="danger" disabled={state.isAsked} onClick={stop}>
          Stop the viewer
        </button>
      </div>
    </Dialog>
  );
}

export function Stopped() {
  const names = traceNames.value.map((one) => one.name).join(" ");
  return (
    <main class="stopped" aria-label="Stopped">
      <h1>The viewer was stopped</h1>
      <p role="status">This page can be closed. To look at the same again:</p>
      <p>
        <code>clew view {names}</code>
      </p>
    </main>
  );
}
