// Records a replay as a video: plays from the cursor on, and has the browser write down what the picture shows.
import { formatDuration, formatInteger } from "../../base/format.ts";
import { writeDuration } from "../../base/webm-duration.ts";
import type { FollowPicture, ShownPicture } from "../../model/export/shown-picture.ts";
import { FRAME_RATE } from "../../model/replay-steps.ts";
import { currentPosition, currentThread, isPlaying, pause, play, speed } from "../../model/replay.ts";
import { timeOf } from "../../model/timeline.ts";
import { themeVariables } from "../theme-variables.ts";

/** Larger videos take more than browsers encode as they go. */
const MOST_WIDTH = 1920;
const BITS_PER_SECOND = 8e6;
const TYPES = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];
const CAPTION_PX = 14;

/** Why this browser can't record; null if it can. */
export function whyNoVideo(): string | null {
  if (typeof MediaRecorder === "undefined" || !("captureStream" in HTMLCanvasElement.prototype)) {
    return "This browser can't record videos.";
  }
  return typeOf() === undefined ? "This browser can't write WebM." : null;
}

function typeOf(): string | undefined {
  return TYPES.find((type) => MediaRecorder.isTypeSupported(type));
}

export interface Recording {
  /** The video; null if it was cancelled. Rejects with an Error where it failed. */
  video: Promise<Blob | null>;
  cancel: () => void;
}

/**
 * Play from the cursor on at `blocksPerSecond` for some seconds, or to the end of the thread, and record it. `onProgress` is
 * told from 0 to 1.
 */
export function recordReplay(
  picture: Pick<ShownPicture, "size"> & { follow: FollowPicture },
  wanted: { blocksPerSecond: number; seconds: number },
  onProgress: (share: number) => void,
): Recording {
  const canvas = document.createElement("canvas");
  const size = picture.size();
  const scale = Math.min(MOST_WIDTH / Math.max(size.width, 1), 1);
  // Encoders take even sizes.
  canvas.width = Math.max(2 * Math.floor((size.width * scale) / 2), 2);
  canvas.height = Math.max(2 * Math.floor((size.height * scale) / 2), 2);
  const context = canvas.getContext("2d", { alpha: false })!;
  const type = typeOf()!;
  const recorder = new MediaRecorder(canvas.captureStream(FRAME_RATE), {
    mimeType: type,
    videoBitsPerSecond: BITS_PER_SECOND,
  });
  // Where this fails nothing has begun; its events come when all of this is done.
  recorder.start();
  const parts: Blob[] = [];
  const speedBefore = speed.peek();
  let isCancelled = false;
  let started = 0;
  let ended = 0;
  let timer = 0;
  const endFollowing = picture.follow((draw) => {
    draw(context, canvas.width, canvas.height);
    caption(context, canvas);
  });
  const stop = () => {
    if (recorder.state !== "inactive") {
      ended = performance.now();
      recorder.stop();
    }
  };
  const clear = () => {
    endFollowing();
    window.clearInterval(timer);
    pause();
    speed.value = speedBefore;
  };
  const video = new Promise<Blob | null>((done, fail) => {
    recorder.ondataavailable = ({ data }) => parts.push(data);
    recorder.onerror = () => {
      clear();
      fail(new Error("the browser could not record the video"));
    };
    recorder.onstop = () => {
      clear();
      new Blob(parts)
        .arrayBuffer()
        .then((content) => {
          const whole = writeDuration(new Uint8Array(content), ended - started);
          done(isCancelled ? null : new Blob([whole], { type: "video/webm" }));
        })
        .catch(fail);
    };
  });
  recorder.onstart = () => {
    started = performance.now();
    speed.value = wanted.blocksPerSecond;
    play();
    timer = window.setInterval(() => {
      const share = (performance.now() - started) / (1000 * wanted.seconds);
      onProgress(Math.min(share, 1));
      if (share >= 1 || !isPlaying.peek()) {
        stop();
      }
    }, 50);
  };
  return {
    video,
    cancel: () => {
      isCancelled = true;
      stop();
    },
  };
}

/** Where in the thread that is, in the upper left corner. */
function caption(context: CanvasRenderingContext2D, canvas: HTMLCanvasElement): void {
  const thread = currentThread.peek();
  if (!thread) {
    return;
  }
  const position = currentPosition.peek();
  const time = timeOf(thread.tid, position);
  const text = `thread ${thread.tid}: ${formatInteger(position)} of ${formatInteger(thread.length)}${
    time === null ? "" : ` · ${formatDuration(time)}`
  }`;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.font = `${CAPTION_PX}px sans-serif`;
  context.textBaseline = "top";
  const read = themeVariables(document.documentElement);
  context.fillStyle = read("--panel");
  context.fillRect(0, 0, Math.min(context.measureText(text).width + 20, canvas.width), CAPTION_PX + 12);
  context.fillStyle = read("--text");
  context.fillText(text, 10, 6);
}
