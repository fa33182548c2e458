// One call in full: its arguments, what it returned, what it had to do with, and the calls around it and in it.
import type { CallArgument, CallRow, OpenedCall } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { formatArguments, formatCallTime, formatResult, tellInjected } from "../../model/calls/call-text.ts";
import { showCall, showEntity } from "../../model/calls/calls.ts";
import { functions } from "../../model/session.ts";
import { update, updateCalls } from "../../model/view-state.ts";

export function CallDetailsBox({ call }: { call: OpenedCall }) {
  const caller = call.function >= 0 ? functions.value?.names[call.function] : undefined;
  const lookAt = (view: "graph" | "function" | "listing") =>
    update({ view, selection: { kind: "block", index: call.block } });
  return (
    <section class="call-details" aria-label="The call" data-open-call={call.call} data-position={call.position}>
      <h3>
        {call.around.map((one) => (
          <span key={one.call} class="quiet">
            <button type="button" class="plain" onClick={() => showCall(one)}>
              <bdi>{one.name}</bdi>
            </button>{" "}
            ›{" "}
          </span>
        ))}
        <bdi>{call.name}</bdi>{" "}
        <button type="button" class="icon" aria-label="Close the call" onClick={() => updateCalls({ call: null })}>
          ×
        </button>
      </h3>
      <dl class="facts">
        <dt>Made</dt>
        <dd>
          at <span title={`${formatInteger(call.time)} ns`}>{formatCallTime(call.time)} s</span> by thread{" "}
          {call.tid ?? "?"}
          {call.duration === null ? ", not seen to return" : `, returned after ${formatDuration(call.duration)}`}
          {call.own !== null && call.n_within > 0 && `, of which ${formatDuration(call.own)} were its own`}
          {call.position === null && "; its thread has no order, so that there is no place to go to"}
        </dd>
        {call.block >= 0 && (
          <>
            <dt>In</dt>
            <dd>
              <bdi class="mono">{caller ?? "code that is not known"}</bdi>{" "}
              <button type="button" onClick={() => lookAt("graph")}>
                Graph
              </button>
              <button type="button" onClick={() => lookAt("function")}>
                Function
              </button>
              <button type="button" onClick={() => lookAt("listing")}>
                Listing
              </button>
            </dd>
          </>
        )}
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
            <dd class={`mono${call.error !== null ? " failed" : ""}`}>
              <bdi>{formatResult(call)}</bdi>
            </dd>
          </>
        )}
        {call.injected.length > 0 && (
          <>
            <dt>Injected</dt>
            <dd data-injected>{tellInjected(call.injected).join("; ")}</dd>
          </>
        )}
        <dt>Filter</dt>
        <dd>
          <button
            type="button"
            class="plain"
            title="Calls with the same"
            onClick={() => updateCalls({ filter: call.filter })}
          >
            {call.filter}
          </button>
        </dd>
        {call.references.length > 0 && (
          <>
            <dt>About</dt>
            <dd>
              {call.references.map((one) => (
                <button
                  key={`${one.entity} ${one.role} ${one.argument}`}
                  type="button"
                  data-about={one.entity}
                  title={`Its calls: ${one.kind} ${one.name}`}
                  onClick={() => showEntity({ entity: one.entity, tid: null, process: null })}
                >
                  {one.role}: <bdi>{one.name.slice(0, 80) || one.kind}</bdi>
                  {one.bytes !== null && `, ${formatInteger(one.bytes)} bytes`}
                </button>
              ))}
            </dd>
          </>
        )}
        {call.n_within > 0 && (
          <>
            <dt>In it</dt>
            <dd>
              <ol class="within" data-within={call.n_within}>
                {call.within.map((one) => (
                  <Within key={one.call} call={one} />
                ))}
              </ol>
              {call.n_within > call.within.length && (
                <p class="quiet">and {formatInteger(call.n_within - call.within.length)} more: the tree has them</p>
              )}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Within({ call }: { call: CallRow }) {
  return (
    <li>
      <button type="button" class="plain mono" data-within-call={call.call} onClick={() => showCall(call)}>
        <bdi>{call.name}</bdi>(<bdi>{formatArguments(call.arguments)}</bdi>) <bdi>{formatResult(call)}</bdi>
      </button>{" "}
      <span class="quiet">{call.duration === null ? "" : formatDuration(call.duration)}</span>
    </li>
  );
}

/** A click on its value searches for calls with the same. */
function Argument({ number, given }: { number: number; given: CallArgument }) {
  const told = given.text ?? given.value ?? "?";
  const { name } = given;
  return (
    <>
      <dt>
        <bdi>{name ?? `Argument ${number}`}</bdi>
      </dt>
      <dd class="mono">
        {name !== undefined && /^\w+$/.test(name) && told.length < 100 && !told.includes(", ") ? (
          <button
            type="button"
            class="plain"
            title="Calls with the same"
            onClick={() => updateCalls({ text: `${name}=${told}` })}
          >
            <bdi>{told}</bdi>
          </button>
        ) : (
          <bdi>{told}</bdi>
        )}{" "}
        <span class="quiet">
          <bdi>{[given.type, given.text === undefined ? undefined : given.value].filter(Boolean).join(", ")}</bdi>
        </span>
      </dd>
    </>
  );
}
