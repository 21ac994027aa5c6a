/** What a deployment needs that is not in this checkout: each lack with the command that repairs it. */

/**
 * @typedef {(program: string, args: string[]) => { ok: boolean, output: string }} RunTool
 * @typedef {{ what: string, remedy: string }} Problem
 */

/**
 * @param {RunTool} run
 * @param {{ needsAccount: boolean }} options  a dry run needs neither account nor Docker
 * @returns {Problem[]}
 */
export function checkDeployment(run, { needsAccount }) {
  if (!needsAccount) return [];
  /** @type {Problem[]} */
  const problems = [];
  const docker = run("docker", ["info"]);
  if (!docker.ok) {
    problems.push({
      what: "Docker does not answer; the image of the sandboxes is built with it.",
      remedy: "Start Docker, or install it: https://docs.docker.com/get-docker/",
    });
  }
  const login = run("wrangler", ["whoami"]);
  if (!login.ok || /not authenticated|not logged in/i.test(login.output)) {
    problems.push({
      what: "You are not logged in to Cloudflare.",
      remedy:
        "npx wrangler login   (or set CLOUDFLARE_API_TOKEN: Workers Scripts and Containers, Edit)",
    });
    return problems;
  }
  const containers = run("wrangler", ["containers", "list"]);
  if (!containers.ok) problems.push(explainContainers(containers.output));
  return problems;
}

/**
 * @param {string} output
 * @returns {Problem}
 */
function explainContainers(output) {
  const [line = ""] = output
    .split("\n")
    .filter((text) => /error|unauthorized|forbidden|plan/i.test(text));
  return {
    what: `The account cannot use containers${line === "" ? "" : `: ${line.trim()}`}`,
    remedy:
      "They need the Workers Paid plan (https://dash.cloudflare.com/?to=/:account/workers/plans) and a login with the right containers:write: npx wrangler login",
  };
}
