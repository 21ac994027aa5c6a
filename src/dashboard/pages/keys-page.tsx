/** The keys of all tenants, for administrators: who has one, what it may do, when it was used, and its end. */
import { useState } from "preact/hooks";
import type { Berth } from "../../client/index.ts";
import type { Key, MadeKey } from "../../protocol/key.ts";
import { Action } from "../parts/action.tsx";
import { AdministratorForm, useAdministrator } from "../parts/administrator.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatTime } from "../parts/format.ts";
import { ResourceTable } from "../parts/resource-table.tsx";
import { SameAs } from "../parts/same-as.tsx";
import { usePolled } from "../parts/use-polled.ts";

const rights = ["read", "exec", "files", "terminal", "lease", "lifecycle", "admin"] as const;
const dayMs = 86_400_000;

export function KeysPage() {
  const administrator = useAdministrator();
  return (
    <>
      <h1>Keys</h1>
      <section class="card">
        <AdministratorForm why="Keys belong to no tenant, so your session does not show them." />
      </section>
      {administrator !== undefined && <Keys berth={administrator} />}
      <SameAs verb="listKeys" command="berth keys" sdk="await berth.keys.list()" />
    </>
  );
}

function Keys({ berth }: { berth: Berth }) {
  const list = usePolled((signal) => berth.keys.list({ signal }), { everyMs: 5000 });
  const [removing, setRemoving] = useState<Key>();
  const keys = list.value ?? [];
  return (
    <>
      <NewKey berth={berth} onMade={list.refresh} />
      <section class="card">
        <ErrorNote error={list.error} what="Reading the keys" />
        <ResourceTable
          label="Keys"
          rows={keys}
          keyOf={({ id }) => id}
          columns={[
            ["Name", ({ name }) => <strong>{name}</strong>],
            ["Tenant", ({ tenant }) => tenant],
            ["From", ({ source }) => source],
            [
              "Rights",
              (key) => (key.rights.length === rights.length ? "all" : key.rights.join(", ")),
            ],
            [
              "Used",
              ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : formatTime(lastUsedAt)),
            ],
            [
              "Expires",
              ({ expiresAt }) => (expiresAt === undefined ? "never" : formatTime(expiresAt)),
            ],
          ]}
          actions={(key) => (
            <button type="button" class="small" onClick={() => setRemoving(key)}>
              Remove …
            </button>
          )}
          empty={<p>No keys but those of the server's variables.</p>}
        />
      </section>
      {removing !== undefined && (
        <Dialog
          title={`Remove the key ${removing.name} of ${removing.tenant}`}
          action="Remove"
          isDangerous
          confirm={removing.name}
          onClose={() => setRemoving(undefined)}
          onAction={async () => {
            await berth.keys.delete(removing.id);
            await list.refresh();
          }}
        >
          <p>Within seconds it is refused, and its streams, terminals, sessions and tokens end.</p>
        </Dialog>
      )}
    </>
  );
}

const noFields = { name: "", tenant: "", days: "" };

function NewKey({ berth, onMade }: { berth: Berth; onMade: () => Promise<void> }) {
  const [fields, setFields] = useState(noFields);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(rights));
  const [made, setMade] = useState<MadeKey>();
  const { name, tenant, days } = fields;
  const set = (field: keyof typeof fields) => (event: { currentTarget: { value: string } }) =>
    setFields({ ...fields, [field]: event.currentTarget.value.trim() });
  const create = async () => {
    const ttl = days === "" ? {} : { ttlMs: Number(days) * dayMs };
    const input = { name, tenant, rights: rights.filter((right) => chosen.has(right)), ...ttl };
    setMade(await berth.keys.create(input));
    setFields(noFields);
    await onMade();
  };
  return (
    <section class="card">
      <h2>A new key</h2>
      <div class="row">
        <input aria-label="Name" placeholder="alice" value={name} onInput={set("name")} />
        <input aria-label="Tenant" placeholder="tenant" value={tenant} onInput={set("tenant")} />
        <input
          type="number"
          min="1"
          aria-label="Days until it expires"
          placeholder="days (never)"
          value={days}
          onInput={set("days")}
        />
        {rights.map((right) => (
          <label class="inline" key={right}>
            <input
              type="checkbox"
              checked={chosen.has(right)}
              onChange={({ currentTarget: { checked } }) => {
                const next = new Set(chosen);
                if (checked) next.add(right);
                else next.delete(right);
                setChosen(next);
              }}
            />
            {right}
          </label>
        ))}
        <Action
          class="primary"
          run={create}
          disabled={name === "" || tenant === "" || chosen.size === 0}
        >
          Create
        </Action>
      </div>
      {made !== undefined && (
        <p class="row" role="status">
          <span>
            The key of {made.name}, shown only now: <code>{made.key}</code>
          </span>
          <Action class="small" run={() => navigator.clipboard.writeText(made.key)}>
            Copy
          </Action>
          <button type="button" class="small" onClick={() => setMade(undefined)}>
            Hide
          </button>
        </p>
      )}
    </section>
  );
}
