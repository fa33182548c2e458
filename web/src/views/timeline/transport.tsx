// Buttons and numbers of replay: play, step, search, speed, where the cursor is.
import { useState } from "preact/hooks";
import { formatDuration, formatInteger, formatShort } from "../../base/format.ts";
import { bookmarks } from "../../model/bookmarks.ts";
import { isRecorded } from "../../model/calls/near-calls.ts";
import { bindKeys } from "../../model/keys.ts";
import {
  currentPosition,
  currentThread,
  direction,
  goTo,
  goToEnd,
  isPlaying,
  notFound,
  replayState,
  seek,
  speed,
  step,
  togglePlay,
} from "../../model/replay.ts";
import { shareOf, speedAt } from "../../model/replay-steps.ts";
import { selectedBlock } from "../../model/selected.ts";
import { isFile, processId } from "../../model/session.ts";
import { settings } from "../../model/settings.ts";
import { mayHaveSignal, showSpan, timeOf, wholeTimeline } from "../../model/timeline.ts";
import { cursor, range, update } from "../../model/view-state.ts";
import { bookmarkCursor, isBookmarked, toggleLanes } from "./timeline-keys.ts";

export function Transport() {
  const timeline = wholeTimeline.value;
  const thread = currentThread.value;
  const isOff = !thread;
  const unit = timeline?.unit ?? "block";
  return (
    <div class="transport" role="toolbar" aria-label="Replay">
      <button
        type="button"
        class="icon"
        aria-expanded={settings.value.showsLanes}
        aria-label="Lanes"
        title="Show or hide the lanes (l)"
        onClick={toggleLanes}
      >
        {settings.value.showsLanes ? "▾" : "▸"}
      </button>
      <span class="buttons">
        <Button label="To the start" hint="Home" glyph="|◂" isOff={isOff} onPress={() => goTo(0)} />
        <Button
          label="Previous call"
          hint="<"
          glyph="«"
          isOff={isOff || isFile.value}
          onPress={() => seek({ what: "call", back: true }, "call before")}
        />
        <Button label="Step back" hint="," glyph="‹" isOff={isOff} onPress={() => step(-1)} />
        <Button
          label={isPlaying.value ? "Pause" : "Play"}
          hint="Space"
          glyph={isPlaying.value ? "❚❚" : "▶"}
          isOff={isOff}
          onPress={togglePlay}
        />
        <Button label="Step on" hint="." glyph="›" isOff={isOff} onPress={() => step(1)} />
        <Button
          label="Next call"
          hint=">"
          glyph="»"
          isOff={isOff || isFile.value}
          onPress={() => seek({ what: "call", back: false }, "call behind")}
        />
        <Button label="To the end" hint="End" glyph="▸|" isOff={isOff} onPress={goToEnd} />
      </span>
      {timeline && !timeline.unit ? (
        <span class="transport-reason" role="note" data-replay-reason>
          No replay: {timeline.reason}
        </span>
      ) : timeline && isOff ? (
        <span class="transport-reason" role="note" data-replay-reason>
          No replay: no thread of this process has a path.
        </span>
      ) : (
        thread && (
          <>
            <button
              type="button"
              aria-pressed={direction.value < 0}
              title="Play backwards"
              onClick={() => (direction.value = direction.value > 0 ? -1 : 1)}
            >
              ◀ backwards
            </button>
            <label class="speed">
              <input
                type="range"
                min={0}
                max={1}
                step={0.01}
                value={shareOf(speed.value)}
                aria-label={`Speed in ${unit}s a second`}
                aria-valuetext={`${formatInteger(speed.value)} ${unit}s a second`}
                onInput={(event) => (speed.value = roundSpeed(speedAt(event.currentTarget.valueAsNumber)))}
              />
              <span class="speed-text">{formatShort(speed.value)}/s</span>
            </label>
            <Place unit={unit} length={thread.length} tid={thread.tid} />
            {/* A file has places in the order, and no searches in it. */}
            {!isFile.value && <SelectedBlock />}
            {!isFile.value && <Jumps />}
          </>
        )
      )}
      <span class="transport-end">
        {notFound.value && (
          <span class="quiet" role="status">
            {notFound.value}
          </span>
        )}
        {range.value && <RangeButtons />}
        {thread && <Bookmarks />}
      </span>
    </div>
  );
}

function Button(properties: { label: string; hint: string; glyph: string; isOff: boolean; onPress: () => void }) {
  const { label, hint, glyph, isOff, onPress } = properties;
  return (
    <button
      type="button"
      class="icon"
      aria-label={label}
      title={`${label} (${hint})`}
      disabled={isOff}
      onClick={onPress}
    >
      {glyph}
    </button>
  );
}

const pressKey = bindKeys<{ commit: () => void; restore: () => void }>(
  "Timeline",
  [
    { key: "Enter", what: "In the field: go to that number", run: ({ commit }) => commit(), goesOn: true },
    { key: "Escape", what: "In the field: have it as it was", run: ({ restore }) => restore(), goesOn: true },
  ],
  { ignoresModifiers: true },
);

/** Where the cursor is, in words; typing a number goes there. */
function Place({ unit, length, tid }: { unit: string; length: number; tid: number }) {
  const [typed, setTyped] = useState<string | null>(null);
  const position = currentPosition.value;
  const time = timeOf(tid, position);
  const gap = replayState.value?.position === position ? replayState.value.gap : null;
  const commit = () => {
    const wanted = Number((typed ?? "").replace(/[,\s_]/g, ""));
    if (typed !== null && typed.trim() !== "" && Number.isFinite(wanted)) {
      goTo(wanted);
    }
    setTyped(null);
  };
  return (
    <span class="place">
      {unit}{" "}
      <input
        class="position"
        aria-label={`Go to ${unit} number`}
        inputMode="numeric"
        value={typed ?? formatInteger(position)}
        size={Math.max(formatInteger(length).length, 5)}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onBlur={commit}
        onKeyDown={(event) => pressKey(event, { commit, restore: () => setTyped(null) })}
      />{" "}
      of {formatInteger(length)}
      {cursor.value && time !== null && <> · {formatDuration(time)}</>}
      {gap && (
        <span class="gap-words" data-gap={gap.reason}>
          {" "}
          · order not recorded for {formatDuration(gap.to - gap.from)}
          {gap.executions > 0 && (
            <>
              , {formatInteger(gap.executions)} executions {gap.reason === "lost" ? "lost" : "counted"}
            </>
          )}
        </span>
      )}
    </span>
  );
}

function SelectedBlock() {
  const block = selectedBlock.value;
  if (block < 0 || isPlaying.value) {
    return null;
  }
  return (
    <span class="buttons" role="group" aria-label="Executions of the selected block">
      <button
        type="button"
        title="To the execution of the selected block before"
        aria-label="Previous execution of the selected block"
        onClick={() => seek({ block, back: true }, "execution of it before")}
      >
        ‹ selected
      </button>
      <button
        type="button"
        title="To the next execution of the selected block"
        aria-label="Next execution of the selected block"
        onClick={() => seek({ block, back: false }, "execution of it behind")}
      >
        selected ›
      </button>
    </span>
  );
}

function Jumps() {
  const [timeline, thread] = [wholeTimeline.value, currentThread.value];
  const position = currentPosition.value;
  const isThere = (what: "syscall" | "signal" | "api", by: 1 | -1) =>
    what !== "signal" ||
    !timeline ||
    !thread ||
    mayHaveSignal(thread, (timeline.to - timeline.from) / timeline.bins, position, by);
  return (
    <span class="buttons" role="group" aria-label="Jumps">
      {(
        [
          ["syscall", "system call"],
          ["signal", "signal"],
          ["api", "API call"],
        ] as const
      )
        .filter(([what]) => what !== "api" || isRecorded.value)
        .map(([what, name]) => (
          <span key={what} class="buttons">
            <button
              type="button"
              aria-label={`Previous ${name}`}
              title={`To the ${name} before`}
              disabled={!isThere(what, -1)}
              onClick={() => seek({ what, back: true }, `${name} before`)}
            >
              ‹
            </button>
            <span class="jump-name quiet">{name}</span>
            <button
              type="button"
              aria-label={`Next ${name}`}
              title={`To the next ${name}`}
              disabled={!isThere(what, 1)}
              onClick={() => seek({ what, back: false }, `${name} behind`)}
            >
              ›
            </button>
          </span>
        ))}
    </span>
  );
}

function RangeButtons() {
  const [from, to] = range.value!;
  return (
    <span class="buttons">
      <span class="quiet">{formatDuration(to - from)} chosen</span>
      <button type="button" onClick={() => showSpan([from, to])}>
        Zoom to it
      </button>
      <button
        type="button"
        aria-label="No range of time"
        title="No range (Escape)"
        onClick={() => update({ range: null })}
      >
        ✕
      </button>
    </span>
  );
}

function Bookmarks() {
  const own = bookmarks.value.filter((mark) => mark.process === processId.value);
  return (
    <span class="buttons">
      <button
        type="button"
        aria-pressed={isBookmarked()}
        aria-label="Bookmark at the cursor"
        title="Set or remove a bookmark (b)"
        onClick={bookmarkCursor}
      >
        ⚑
      </button>
      {own.length > 0 && (
        <select
          aria-label="Go to a bookmark"
          value=""
          onChange={(event) => {
            const mark = own[Number(event.currentTarget.value)];
            event.currentTarget.value = "";
            if (mark) {
              update({ cursor: { thread: mark.thread, position: mark.position } });
            }
          }}
        >
          <option value="">{own.length === 1 ? "1 bookmark" : `${own.length} bookmarks`}</option>
          {own.map((mark, index) => (
            <option key={`${mark.thread}:${mark.position}`} value={index}>
              {mark.thread}: {formatInteger(mark.position)} · {formatDuration(mark.time)}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}

/** Two digits are enough. */
function roundSpeed(value: number): number {
  const unit = 10 ** Math.max(Math.floor(Math.log10(value)) - 1, 0);
  return Math.round(value / unit) * unit;
}
