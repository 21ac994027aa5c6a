/** The facts of a sandbox, and what does the same elsewhere. */

import type { TabProps } from "../pages/sandbox-page.tsx";
import { formatSpan, formatTime } from "../parts/format.ts";
import { SameAs } from "../parts/same-as.tsx";

export function OverviewTab({ info }: TabProps) {
  const { network } = info;
  const facts: [string, string | undefined][] = [
    ["Id", info.id],
    ["State", `${info.state} since ${formatTime(info.stateSince)}`],
    ["Reason", info.reason],
    [
      "Made",
      `${formatTime(info.createdAt)}${info.madeBy === undefined ? "" : ` by ${info.madeBy}`}`,
    ],
    ["Repository", info.scope?.repo],
    ["Branch", info.scope?.branch],
    ["Image", info.image ?? "the default"],
    ["Size", info.size ?? "the default"],
    ["Files", info.files],
    ["Incarnation", info.incarnation],
    ["Network", network.internet ? (network.allow?.join(", ") ?? "the internet") : "none"],
    ["Idle", `${info.onIdle} after ${formatSpan(info.idleTimeoutMs)}`],
    ["Wakes", info.wake === "auto" ? "with the next call" : "only by a start"],
    ["Plan", info.plan],
    ["Isolation", info.isolation && isolationText(info.isolation)],
  ];
  return (
    <div class="card">
      <dl>
        {facts.map(([name, value]) =>
          value === undefined ? null : (
            <>
              <dt key={name}>{name}</dt>
              <dd>{value}</dd>
            </>
          ),
        )}
      </dl>
      {info.notes?.map((note) => (
        <p class="quiet" key={note}>
          {note}
        </p>
      ))}
      <SameAs verb="getSandbox" of={{ id: info.id }} sdk={`(await berth.get("${info.id}")).info`} />
    </div>
  );
}

const isolationText = (isolation: object): string =>
  Object.entries(isolation)
    .map(([name, value]) =>
      value === true ? name : value === false ? `no ${name}` : `${name} ${value}`,
    )
    .join(", ");
