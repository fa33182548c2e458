// The calls of all processes in the file that the page is in, which has them process by process; answered as
// src/clew/server/call_answers.py does it of a trace. Pure.
import type { CallDetails, EntityPage, EntityRow, OpenedEntity, TreeThread } from "./calls.ts";
import { ApiError } from "./client.ts";
import { choose, type TakenCalls, without } from "./file-call-choice.ts";
import { treeOf } from "./file-call-tree.ts";
import { chartOf, lifeOf, MOST_LIFE, pageOf, pageOfEntities, type Summed, sumUp } from "./file-calls.ts";

/** What the file has of a process' calls. */
export interface TakenProcess {
  process: number;
  taken: TakenCalls;
}

/** What is asked for behind the number of the trace. `missing` calls are of processes that are not in the file. Throws an
 * ApiError for what there is not. */
export function answerFromAll(
  of: readonly TakenProcess[],
  missing: number,
  path: string,
  words: URLSearchParams,
): unknown {
  const [what, which] = path.split("/") as [string, string | undefined];
  if (what === "entities") {
    return which === undefined ? pageOfEntities(entitiesOf(of), without(words, "own")) : oneEntity(of, Number(which));
  }
  switch (which) {
    case undefined:
      return pageOf(chooseAll(of, words), words, (call) => isNamed(call, words));
    case "summary": {
      const rows = chooseAll(of, words);
      return sumUp(summaryOf(of, missing), rows, chooseAll(of, without(words, "filter")));
    }
    case "chart":
      return chartOf(summaryOf(of, missing), words, (inside) => chooseAll(of, inside));
    case "tree":
      return {
        threads: of.flatMap(({ taken }) => (treeOf(taken, words) as { threads: TreeThread[] }).threads),
      };
    default:
      throw new ApiError(404, "that is told of single processes");
  }
}

const isNamed = ({ process, call }: CallDetails, words: URLSearchParams) =>
  process === Number(words.get("process")) && call === Number(words.get("call"));

/** Calls that are asked for, in the order of time; those of one time by process. Blocks are numbers of each process' own. */
function chooseAll(of: readonly TakenProcess[], words: URLSearchParams): CallDetails[] {
  return of
    .flatMap(({ taken }) => choose(taken, words).map((call) => ({ ...call, block: -1, function: -1 })))
    .sort((a, b) => a.time - b.time);
}

function summaryOf(of: readonly TakenProcess[], missing: number): Summed {
  const known = of.map(({ taken }) => taken.summary);
  const times = (name: "from" | "to") => known.map((one) => one[name]).filter((time) => time !== null);
  const sum = (name: "total" | "omitted") => known.reduce((all, one) => all + one[name], 0);
  return {
    source: "recorded",
    reason: null,
    total: sum("total"),
    omitted: sum("omitted") + missing,
    untimed: 0,
    from: known.length > 0 ? Math.min(...times("from")) : null,
    to: known.length > 0 ? Math.max(...times("to")) : null,
  };
}

/** Each part of the file has all entities; of all processes those with the most calls come first. */
function entitiesOf(of: readonly TakenProcess[]): TakenCalls["entities"] {
  const first = of.at(0)?.taken;
  const rows = (first?.entities.rows ?? []).map((row) => ({ ...row, calls: row.all_calls, bytes: bytesOf(of, row) }));
  return {
    source: "recorded" as EntityPage["source"],
    rows: rows.sort((a, b) => (b.calls ?? 0) - (a.calls ?? 0) || (a.entity ?? 0) - (b.entity ?? 0)),
  };
}

function bytesOf(of: readonly TakenProcess[], { entity }: EntityRow): number {
  const touches = of[0].taken.touches.filter((one) => one.entity === entity);
  return touches.reduce((sum, one) => sum + one.bytes_read + one.bytes_written, 0);
}

function oneEntity(of: readonly TakenProcess[], entity: number): OpenedEntity {
  const { rows } = entitiesOf(of);
  const found = rows.find((row) => row.entity === entity);
  if (!found) {
    throw new ApiError(400, `no entity ${entity} in this trace`);
  }
  const life = of.flatMap(({ process, taken }) => lifeOf(taken.calls, entity, process));
  life.sort((a, b) => a.time - b.time);
  return {
    ...found,
    touches: of[0].taken.touches.filter((one) => one.entity === entity),
    parent_name: rows.find((row) => row.entity !== null && row.entity === found.parent)?.name ?? null,
    life: life.slice(0, MOST_LIFE),
    life_total: life.length,
  };
}
