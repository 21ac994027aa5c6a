/** Shows what does the same as a part of the page: by curl, by the command, by the SDK. */
import { useState } from "preact/hooks";

export type Lines = { curl: string; command?: string; sdk: string };

/** `curl` without the address and the key, which are the same everywhere. */
export function curlLine(method: string, path: string, body?: object): string {
  const data =
    body === undefined ? "" : ` --json '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
  const how = method === "GET" || (method === "POST" && body !== undefined) ? "" : ` -X ${method}`;
  return `curl -H "Authorization: Bearer $BERTH_KEY"${how}${data} "${location.origin}${path}"`;
}

export function SameAs({ curl, command, sdk }: Lines) {
  const kinds = [["curl", curl] as const, ...named("command", command), ["SDK", sdk] as const];
  const [copied, setCopied] = useState("");
  const copy = async (kind: string, text: string) => {
    await navigator.clipboard.writeText(text);
    setCopied(kind);
    setTimeout(() => setCopied(""), 1500);
  };
  return (
    <details class="same-as">
      <summary>Do the same elsewhere</summary>
      {kinds.map(([kind, text]) => (
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

const named = (kind: string, text: string | undefined): (readonly [string, string])[] =>
  text === undefined ? [] : [[kind, text]];
