/** Asks what a new sandbox shall have, and opens its page. */
import { useState } from "preact/hooks";
import { berth } from "../api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { addressOf } from "../parts/router.ts";
import { SameAs } from "../parts/same-as.tsx";

export function CreateDialog({ onClose }: { onClose: () => void }) {
  const [fields, setFields] = useState({
    repo: "",
    branch: "",
    image: "",
    size: "",
    onIdle: "pause",
  });
  const set = (name: keyof typeof fields) => (event: { currentTarget: { value: string } }) =>
    setFields({ ...fields, [name]: event.currentTarget.value.trim() });
  const { repo, branch, image, size, onIdle } = fields;
  const input = {
    ...(repo === "" ? {} : { scope: { repo, ...(branch === "" ? {} : { branch }) } }),
    ...(image === "" ? {} : { image }),
    ...(size === "" ? {} : { size }),
    ...(onIdle === "pause" ? {} : { onIdle: onIdle as "destroy" | "none" }),
  };
  const create = async () => {
    const { id } = await berth.create(input);
    location.hash = addressOf(["sandboxes", id]);
  };
  return (
    <Dialog title="Create a sandbox" action="Create" onClose={onClose} onAction={create}>
      <label>
        Repository of its scope, if it has one
        <input placeholder="github.com/owner/name" value={repo} onInput={set("repo")} />
      </label>
      <label>
        Branch
        <input value={branch} disabled={repo === ""} onInput={set("branch")} />
      </label>
      <div class="grid">
        <label>
          Image
          <input placeholder="the default" value={image} onInput={set("image")} />
        </label>
        <label>
          Size
          <input placeholder="the default" value={size} onInput={set("size")} />
        </label>
      </div>
      <label>
        When nothing happens in it for a while
        <select value={onIdle} onChange={set("onIdle")}>
          <option value="pause">pause it and keep its files</option>
          <option value="destroy">destroy it</option>
          <option value="none">let it run</option>
        </select>
      </label>
      <SameAs
        verb="createSandbox"
        body={input}
        command="berth start"
        sdk={`await berth.create(${JSON.stringify(input)})`}
      />
    </Dialog>
  );
}
