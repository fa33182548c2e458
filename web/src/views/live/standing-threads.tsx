// The threads of a program that stands still: which is meant by steps, where it is, what its registers hold; and which wait.
import type { ProgramStatus, StandingThread } from "../../api/live-control.ts";
import { formatInteger } from "../../base/format.ts";
import { chooseThread, meantThread } from "../../model/live/program.ts";
import { describeOther, describeStanding } from "../../model/live/program-state.ts";

export function StandingThreads({ status }: { status: ProgramStatus }) {
  const meant = meantThread.value;
  if (!status.is_held) {
    return null;
  }
  const leftOut = status.n_standing - status.standing.length + (status.n_elsewhere - status.elsewhere.length);
  return (
    <>
      <fieldset class="standing">
        <legend>Threads that stand still</legend>
        {status.standing.map((thread) => (
          <label key={thread.tid} data-reason={thread.reason} title={`${thread.symbol} ${thread.address}`}>
            <input
              type="radio"
              name="standing-thread"
              checked={thread.tid === meant?.tid}
              onChange={() => chooseThread(thread.tid)}
            />
            <span>
              {thread.tid} <span class="mono">{describeStanding(thread)}</span>
              {thread.symbol && <span class="mono quiet"> {thread.address}</span>}
            </span>
          </label>
        ))}
        {status.standing.length === 0 && <p class="quiet">None: those that wait stand still when they return.</p>}
      </fieldset>
      {status.elsewhere.length > 0 && (
        <ul aria-label="Threads that do not stand still" class="elsewhere">
          {status.elsewhere.map((thread) => (
            <li key={thread.tid}>
              {thread.tid} {describeOther(thread)}
            </li>
          ))}
        </ul>
      )}
      {leftOut > 0 && <p class="quiet">and {formatInteger(leftOut)} more threads</p>}
      {meant && <Registers thread={meant} />}
    </>
  );
}

function Registers({ thread }: { thread: StandingThread }) {
  const all = Object.entries(thread.registers);
  const half = Math.ceil(all.length / 2);
  return (
    <table class="registers">
      <caption>Registers of thread {thread.tid}</caption>
      <tbody>
        {all.slice(0, half).map((left, i) => (
          <tr key={left[0]}>
            {[left, ...all.slice(half + i, half + i + 1)].map(([name, value]) => [
              <th key={name} scope="row">
                {name}
              </th>,
              <td key={`${name} value`} data-register={name}>
                {value}
              </td>,
            ])}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
