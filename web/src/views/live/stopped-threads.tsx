// The threads of a program that is stopped: which is meant by steps, where it is, what its registers hold; and which wait.
import type { ProgramStatus, StoppedThread } from "../../api/live-control.ts";
import { formatInteger } from "../../base/format.ts";
import { chooseThread, meantThread } from "../../model/live/program.ts";
import { describeOther, describeStopped } from "../../model/live/program-state.ts";

export function StoppedThreads({ status }: { status: ProgramStatus }) {
  const meant = meantThread.value;
  if (!status.is_held) {
    return null;
  }
  const leftOut = status.n_stopped - status.stopped.length + (status.n_elsewhere - status.elsewhere.length);
  return (
    <>
      <fieldset class="stopped-threads">
        <legend>Stopped threads</legend>
        {status.stopped.map((thread) => (
          <label key={thread.tid} data-reason={thread.reason} title={`${thread.symbol} ${thread.address}`}>
            <input
              type="radio"
              name="stopped-thread"
              checked={thread.tid === meant?.tid}
              onChange={() => chooseThread(thread.tid)}
            />
            <span>
              {thread.tid} <span class="mono">{describeStopped(thread)}</span>
              {thread.symbol && <span class="mono quiet"> {thread.address}</span>}
            </span>
          </label>
        ))}
        {status.stopped.length === 0 && <p class="quiet">None: those that wait stop when they return.</p>}
      </fieldset>
      {status.elsewhere.length > 0 && (
        <ul aria-label="Other threads" class="elsewhere">
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

function Registers({ thread }: { thread: StoppedThread }) {
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
