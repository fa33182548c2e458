import { deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";
import { ApiClient, ApiError } from "./client.ts";
import { FileSource } from "./file-source.ts";
import { fetchFrames, fetchReplay, fetchSeek, type ReplayState } from "./timeline.ts";

const POSITIONS = [0, 40, 80, 120, 160, 200];
const PROCESS = "traces/0/processes/0";

function pack(content: string | Uint8Array): string {
  return deflateRawSync(content).toString("base64");
}

function stateAt(position: number): Partial<ReplayState> {
  return { thread: 7, position, length: 200, recent: [position, -1, position + 1] };
}

/** A file with some answers. */
function makeFile(change: Record<string, string | null> = {}): FileSource {
  const answers: Record<string, unknown> = {
    traces: { traces: [] },
    [`${PROCESS}/events`]: { events: [{ time: 5 }, { time: 50 }], omitted: 3 },
    [`${PROCESS}/listing?count=64&start=0`]: { start: 0 },
  };
  for (const position of POSITIONS) {
    answers[`${PROCESS}/threads/7/replay?position=${position}`] = stateAt(position);
  }
  const index = {
    version: 1,
    left_out: ["everything else"],
    chunks: [
      { kind: "json", keys: Object.keys(answers) },
      { kind: "arrays", keys: [`${PROCESS}/counts`] },
    ],
  };
  const elements: Record<string, string | null> = {
    "clew-index": pack(JSON.stringify(index)),
    "clew-chunk-0": pack(JSON.stringify(answers)),
    "clew-chunk-1": pack(Uint8Array.of(1, 2, 3)),
    ...change,
  };
  return new FileSource((id) => elements[id] ?? null);
}

const at = { thread: 7, position: 80 };

test("answers are those of the file, with their words in any order", async () => {
  const client = new ApiClient(makeFile());
  expect(client.isFile).toBe(true);
  expect(await client.json("traces")).toEqual({ traces: [] });
  expect(await client.json(`${PROCESS}/listing`, { start: 0, count: 64, threads: null })).toEqual({ start: 0 });
  expect(await makeFile().leftOut()).toEqual(["everything else"]);
});

test("arrays are another copy each time, and the same whatever of them is asked for", async () => {
  const client = new ApiClient(makeFile());
  const first = new Uint8Array(await client.bytes(`${PROCESS}/counts`, { blocks: true, owners: true }));
  first.fill(9);
  const second = new Uint8Array(await client.bytes(`${PROCESS}/counts`, { blocks: true }));
  expect([...second]).toEqual([1, 2, 3]);
});

test("what is not in the file is said in words", async () => {
  const client = new ApiClient(makeFile());
  await expect(client.json(`${PROCESS}/functions/9`)).rejects.toThrow(/^the code of this function is not in this file/);
  await expect(client.json(`${PROCESS}/search`, { by: "text" })).rejects.toBeInstanceOf(ApiError);
  await expect(client.json(`${PROCESS}/threads/8/replay`, { position: 1 })).rejects.toThrow(/this thread's replay/);
});

test("a file that is damaged is said to be", async () => {
  for (const id of ["clew-index", "clew-chunk-0"]) {
    for (const content of [null, "", "!!", "AAAA"]) {
      await expect(new ApiClient(makeFile({ [id]: content })).json("traces")).rejects.toThrow(/damaged/);
    }
  }
});

test("events are those of the time that is asked for", async () => {
  const client = new ApiClient(makeFile());
  expect(await client.json(`${PROCESS}/events`, { from: 0, to: 10 })).toEqual({ events: [{ time: 5 }], omitted: 3 });
});

test("a place in time is the nearest that is in the file, and steps go from one to the next", async () => {
  const client = new ApiClient(makeFile());
  expect((await fetchReplay(client, 0, 0, { thread: 7, position: 95 })).position).toBe(80);
  expect(await fetchSeek(client, 0, 0, at, { step: 1 })).toMatchObject({ position: 120, found: true });
  expect(await fetchSeek(client, 0, 0, at, { step: -1 })).toMatchObject({ position: 40, found: true });
  expect(await fetchSeek(client, 0, 0, { thread: 7, position: 200 }, { step: 1 })).toMatchObject({
    position: 200,
    found: false,
  });
  await expect(fetchSeek(client, 0, 0, at, { what: "call", back: false })).rejects.toThrow(/searches in the order/);
});

test("frames lead on in either direction, however far apart the places are", async () => {
  const client = new ApiClient(makeFile());
  const positions = async (start: number, stride: number, frames: number) => [
    ...(await fetchFrames(client, 0, 0, 7, { start, stride, frames })).position,
  ];
  expect(await positions(0, 50, 6)).toEqual(POSITIONS);
  // Thinned where there are more than were asked for, and none of them is told twice.
  expect(await positions(0, 100, 2)).toEqual([40, 160]);
  // None is so near: that before and that behind.
  expect(await positions(81, 1, 15)).toEqual([80, 120]);
  expect(await positions(201, 1, 15)).toEqual([200]);
  const found = await fetchFrames(client, 0, 0, 7, { start: 40, stride: 40, frames: 1 });
  expect([...found.block]).toEqual([40, 41]);
  expect([...found.blockEnd]).toEqual([2]);
});
