// Takes what is shown out of the page: pictures, a video of the replay, tables.
import { useEffect, useRef, useState } from "preact/hooks";
import { formatInteger } from "../../base/format.ts";
import { type ShownPicture, shownPicture } from "../../model/export/shown-picture.ts";
import { currentThread, speed } from "../../model/replay.ts";
import { FASTEST, SLOWEST } from "../../model/replay-steps.ts";
import { wholeTimeline } from "../../model/timeline.ts";
import { Dialog, DialogHead } from "../shell/dialog.tsx";
import { download, fileName } from "./download.ts";
import type { ExportPart } from "./export-part.ts";
import { ExportTable } from "./export-table.tsx";
import { type Recording, recordReplay, whyNoVideo } from "./replay-recorder.ts";

const SCALES = [1, 2, 3, 4];
/** What graphics processors draw at once, along each side. */
const MOST_PIXELS = 8192;
const SECONDS = { least: 1, most: 120, first: 10 };

export function ExportDialog() {
  const [said, setSaid] = useState<{ text: string; isError: boolean } | null>(null);
  const [isBusy, setBusy] = useState(false);
  /** Do some work, and tell how it ended. */
  const run = (work: () => Promise<string | null>) => {
    setBusy(true);
    setSaid(null);
    void Promise.resolve()
      .then(work)
      .then((text) => setSaid(text === null ? null : { text, isError: false }))
      .catch((error: unknown) =>
        setSaid({ text: error instanceof Error ? error.message : String(error), isError: true }),
      )
      .finally(() => setBusy(false));
  };
  const save = (content: Blob, what: string) => {
    const name = fileName(what);
    download(content, name);
    return `Saved as ${name}`;
  };
  return (
    <Dialog name="export" title="Export">
      <DialogHead title="Export" />
      <Picture isBusy={isBusy} run={run} save={save} />
      <Replay isBusy={isBusy} run={run} save={save} />
      <ExportTable isBusy={isBusy} run={run} save={save} />
      {said && (
        <p class={said.isError ? "export-said error" : "export-said"} role={said.isError ? "alert" : "status"}>
          {said.text}
        </p>
      )}
    </Dialog>
  );
}

const PICTURE_WORDS: Record<ShownPicture["name"], string> = {
  graph: "The graph as it is seen, with labels and legend.",
  function: "The function: PNG as it is seen, SVG all of it.",
  calls: "The charts of calls as they are seen, with legend.",
};

function Picture({ isBusy, run, save }: ExportPart) {
  const [scale, setScale] = useState(2);
  const shown = shownPicture.value;
  const { width, height } = shown?.size() ?? { width: 0, height: 0 };
  const fitting = SCALES.filter((one) => one * Math.max(width, height) <= MOST_PIXELS);
  const chosen = fitting.includes(scale) ? scale : (fitting.at(-1) ?? 1);
  const png = async () => {
    const canvas = await shown!.paint(chosen);
    const content = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (!content) {
      throw new Error("the browser could not make a picture of this size");
    }
    return save(content, `${shown!.name}.png`);
  };
  const svg = () => {
    const content = new Blob([shown!.svg()], { type: "image/svg+xml" });
    return Promise.resolve(save(content, `${shown!.name}.svg`));
  };
  return (
    <fieldset disabled={!shown || isBusy}>
      <legend>Picture</legend>
      <p class="quiet">
        {shown ? PICTURE_WORDS[shown.name] : "The graph, the function view and the view of calls have pictures."}
      </p>
      <div class="export-row">
        <label>
          Scale{" "}
          <select value={chosen} onChange={(event) => setScale(Number(event.currentTarget.value))}>
            {fitting.map((one) => (
              <option key={one} value={one}>
                {one}× ({formatInteger(Math.round(width * one))} × {formatInteger(Math.round(height * one))})
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => run(png)}>
          PNG
        </button>
        <button type="button" onClick={() => run(svg)}>
          SVG
        </button>
      </div>
    </fieldset>
  );
}

function Replay({ isBusy, run, save }: ExportPart) {
  const [seconds, setSeconds] = useState(SECONDS.first);
  const [blocksPerSecond, setSpeed] = useState(speed.peek());
  const [progress, setProgress] = useState<number | null>(null);
  const recording = useRef<Recording | null>(null);
  // Whoever closes the dialog wants no video any more.
  useEffect(() => () => recording.current?.cancel(), []);
  const unit = wholeTimeline.value?.unit ?? "block";
  const shown = shownPicture.value;
  const follow = shown?.follow;
  const reason =
    whyNoVideo() ??
    (!currentThread.value
      ? (wholeTimeline.value?.reason ?? "No thread of this process has a path.")
      : !follow
        ? "The graph and the function view show a replay."
        : null);
  const record = async () => {
    setProgress(0);
    recording.current = recordReplay({ size: shown!.size, follow: follow! }, { blocksPerSecond, seconds }, setProgress);
    try {
      const video = await recording.current.video;
      return video && save(video, "replay.webm");
    } finally {
      recording.current = null;
      setProgress(null);
    }
  };
  return (
    <fieldset disabled={reason !== null || (isBusy && progress === null)}>
      <legend>Replay as a video</legend>
      <p class="quiet">{reason ?? "From the cursor on, in WebM. It is recorded as it plays."}</p>
      <div class="export-row">
        <label>
          Seconds{" "}
          <input
            type="number"
            min={SECONDS.least}
            max={SECONDS.most}
            value={seconds}
            disabled={progress !== null}
            onInput={(event) => setSeconds(within(event.currentTarget.valueAsNumber, SECONDS.least, SECONDS.most))}
          />
        </label>
        <label>
          {unit}s a second{" "}
          <input
            type="number"
            min={SLOWEST}
            max={FASTEST}
            value={blocksPerSecond}
            disabled={progress !== null}
            onInput={(event) => setSpeed(within(event.currentTarget.valueAsNumber, SLOWEST, FASTEST))}
          />
        </label>
        {progress === null ? (
          <button type="button" onClick={() => run(record)}>
            Record WebM
          </button>
        ) : (
          <>
            <progress value={progress} aria-label="Recording" />
            <button type="button" onClick={() => recording.current?.cancel()}>
              Cancel
            </button>
          </>
        )}
      </div>
    </fieldset>
  );
}

function within(value: number, least: number, most: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(Math.round(value), least), most) : least;
}
