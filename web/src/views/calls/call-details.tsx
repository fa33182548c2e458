// One call in full: its arguments, what it returned, and what it had to do with.
import type { CallArgument, CallDetails } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { formatResult } from "../../model/calls/call-text.ts";
import { showEntity } from "../../model/calls/calls.ts";
import { updateCalls } from "../../model/view-state.ts";

export function CallDetailsBox({ call }: { call: CallDetails }) {
  return (
    <section class="call-details" aria-label="The call" data-open-call={call.call} data-position={call.position}>
      <h3>
        <bdi>{call.name}</bdi>{" "}
        <button type="button" class="icon" aria-label="Close the call" onClick={() => updateCalls({ call: null })}>
          ×
        </button>
      </h3>
      <dl class="facts">
        <dt>Made</dt>
        <dd>
          at {formatDuration(call.time)} by thread {call.tid ?? "?"}
          {call.duration !== null && `, returned after ${formatDuration(call.duration)}`}
          {call.position === null && "; its thread has no order, so that there is no place to go to"}
        </dd>
        {call.library !== null && (
          <>
            <dt>Of</dt>
            <dd>
              <bdi>{call.library}</bdi>
            </dd>
          </>
        )}
        {call.arguments.map((one, index) => (
          <Argument key={index} number={index} given={one} />
        ))}
        {(call.result !== null || call.error !== null) && (
          <>
            <dt>Result</dt>
            <dd class="mono">
              <bdi>{formatResult(call)}</bdi>
            </dd>
          </>
        )}
        {call.references.length > 0 && (
          <>
            <dt>About</dt>
            <dd>
              {call.references.map((one) => (
                <button
                  key={`${one.entity} ${one.role} ${one.argument}`}
                  type="button"
                  onClick={() => showEntity({ entity: one.entity, tid: null, process: null })}
                >
                  entity {one.entity}, {one.role}
                  {one.bytes !== null && `, ${formatInteger(one.bytes)} bytes`}
                </button>
              ))}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Argument({ number, given }: { number: number; given: CallArgument }) {
  return (
    <>
      <dt>
        <bdi>{given.name ?? `Argument ${number}`}</bdi>
      </dt>
      <dd class="mono">
        <bdi>{given.text ?? given.value ?? "?"}</bdi>{" "}
        <span class="quiet">
          <bdi>{[given.type, given.text === undefined ? undefined : given.value].filter(Boolean).join(", ")}</bdi>
        </span>
      </dd>
    </>
  );
}
