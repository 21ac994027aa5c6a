/** `berth image`: the images of the machine that the server runs on. */
import { createReadStream, statSync } from "node:fs";
import type { Images } from "../../client/images.ts";
import { connect } from "../../client/index.ts";
import type { Image } from "../../protocol/image.ts";
import { required } from "../args/option.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import type { Column } from "../output/table.ts";
import { findAdministrator } from "../server/find-server.ts";

const MiB = 1024 * 1024;
/** Short, so that the progress moves. */
const pollMs = 2000;

const referenceArgument = required("image", "host/path:tag, host/path@sha256:…, or a name");

const pullCommand = command({
  name: "pull",
  summary: "Pull an image from a registry",
  about:
    "A pull that was cut continues where it ended. Layers that are there are not pulled again.",
  args: { reference: referenceArgument },
  examples: [["By its tag", "berth image pull registry.example.com/team/app:1.2"]],
  async run(context, { args: { reference } }) {
    const { output, progress } = context;
    const images = administeredImages(context);
    for (;;) {
      const image = await images.pull(reference, { waitMs: pollMs });
      const { state, bytes, bytesTotal = 0, digest = "" } = image;
      if (state === "ready") {
        progress.end();
        return void output.printResult(image, `${reference}  ${digest}`);
      }
      progress.show(`Pulling ${Math.floor(bytes / MiB)} of ${Math.ceil(bytesTotal / MiB)} MiB`);
    }
  },
});

const importCommand = command({
  name: "import",
  summary: "Import an image from a tar archive",
  about:
    "The archive is an OCI layout, what `docker save` writes, or a plain root file system, not packed.",
  args: {
    file: required("file", "The archive"),
    name: required("name", "A name in lower case, with a tag after a colon if it has one"),
  },
  examples: [
    ["What Docker saved", "docker save app:1 > app.tar && berth image import app.tar app:1"],
  ],
  async run(context, { args: { file, name } }) {
    const { output, progress } = context;
    const bytes = sizeOf(file);
    progress.show(`Importing ${Math.ceil(bytes / MiB)} MiB`);
    const image = await administeredImages(context).import(name, {
      stream: createReadStream(file),
      bytes,
    });
    progress.end();
    output.printResult(image, `${name}  ${image.digest ?? ""}`);
  },
});

const inspectCommand = command({
  name: "inspect",
  summary: "Show one image",
  args: { reference: referenceArgument },
  examples: [["What it says about itself", "berth image inspect app:1"]],
  async run({ berth, output }, { args: { reference } }) {
    const image = await berth.images.get(reference);
    output.printResult(image, JSON.stringify(image, null, 2));
  },
});

const removeCommand = command({
  name: "remove",
  summary: "Remove the name of an image",
  about: "Its layers go when no name, sandbox or checkpoint needs them any more.",
  args: { reference: referenceArgument },
  examples: [["One image", "berth image remove app:1"]],
  async run(context, { args: { reference } }) {
    const image = await administeredImages(context).remove(reference);
    context.output.printResult(image, `Removed ${reference}.`);
  },
});

const columns: Column<Image>[] = [
  { name: "IMAGE", cell: ({ reference }) => reference, shrinks: true },
  { name: "STATE", cell: ({ state }) => state },
  { name: "SIZE", cell: ({ bytes }) => `${Math.ceil(bytes / MiB)} MiB` },
  { name: "IN USE", cell: ({ inUse = 0 }) => String(inUse) },
];

const listCommand = command({
  name: "list",
  summary: "List the images",
  examples: [["All of them", "berth image list"]],
  async run({ berth, output, json }) {
    const images = await berth.images.list();
    if (json) return void output.printJson({ images });
    if (images.length === 0) return void output.info("No images.");
    output.printTable(columns, images);
  },
});

export const imageCommand = command({
  name: "image",
  summary: "Pull, import, list and remove images",
  group: "Server",
  about:
    "Without a subcommand it lists them. All tenants of a machine share its images, so `pull`, `import` and `remove` " +
    "need the administrator's key: BERTH_ADMIN_KEY, or on this machine $BERTH_DATA/admin-key or .berth/admin-key.",
  examples: [["Pull one and use it", "berth image pull registry.example.com/team/app:1.2"]],
  commands: [pullCommand, importCommand, listCommand, inspectCommand, removeCommand],
  run: listCommand.run,
});

function administeredImages({ cwd, env }: Context): Images {
  return connect(findAdministrator(cwd, env)).images;
}

function sizeOf(file: string): number {
  const status = statSync(file, { throwIfNoEntry: false });
  if (status?.isFile()) return status.size;
  throw new Failure(`${file} is not a file.`, {
    hint: "Give the path of a tar archive.",
    code: "bad_usage",
  });
}
