/** Shows what does the same as a part of the page: by curl, by the command, by the SDK. */
import { useState } from "preact/hooks";
import type { Schemas, VerbRow } from "../../protocol/verbs/row.ts";
import { type VerbName, verbRows } from "../../protocol/verbs/rows.ts";

type SameAsProps = {
  verb: VerbName;
  /** The parameters of the verb's path. */
  of?: Record<string, string | number>;
  query?: Record<string, string | number>;
  body?: object;
  /** A command line, where there is one. */
  command?: string;
  sdk: string;
};

const rows: Record<VerbName, VerbRow> = verbRows({} as Schemas);

export function SameAs({ command, sdk, ...call }: SameAsProps) {
  const lines = [
    ["curl", curlLine(call)] as const,
    ...(command === undefined ? [] : [["command", command] as const]),
    ["SDK", sdk] as const,
  ];
  const [copied, setCopied] = useState("");
  const copy = async (kind: string, text: string) => {
    await navigator.clipboard.writeText(text);
    setCopied(kind);
    setTimeout(() => setCopied(""), 1500);
  };
  return (
    <details class="same-as">
      <summary>Do the same elsewhere</summary>
      {lines.map(([kind, text]) => (
        <div class="line" key={kind}>
          <span class="quiet">{kind}</span>
          <code>{text}</code>
          <button type="button" class="small" onClick={() => copy(kind, text)}>
            {copied === kind ? "Copied" : "Copy"}
          </button>
        </div>
      ))}
    </details>
  );
}

/** The method and the path are those of the verb's row. Without the key, which no page can read. */
function curlLine({ verb, of = {}, query, body }: Omit<SameAsProps, "command" | "sdk">): string {
  const { method, path } = rows[verb];
  const filled = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(of[name] ?? ""));
  const search = query === undefined ? "" : `?${new URLSearchParams(textOf(query))}`;
  const how = method === (body === undefined ? "GET" : "POST") ? "" : ` -X ${method}`;
  const data = body === undefined ? "" : ` --json ${quote(JSON.stringify(body))}`;
  const url = quote(`${location.origin}${filled}${search}`);
  return `curl -H "Authorization: Bearer $BERTH_KEY"${how}${data} ${url}`;
}

function textOf(query: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

/** For a shell: names and paths can contain anything. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
