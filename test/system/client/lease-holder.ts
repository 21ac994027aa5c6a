/**
 * A program for a test to kill: it holds a lease and runs something under it until its end.
 */
import { connect } from "../../../src/client/index.ts";

const { BERTH_URL = "", BERTH_KEY = "", SANDBOX = "" } = process.env;
const sandbox = connect({ url: BERTH_URL, key: BERTH_KEY }).sandbox(SANDBOX);
const lease = await sandbox.lease.hold({ holder: "doomed" });
const call = { argv: ["sleep", "600"], endsWithLease: true };
await sandbox.processes.start(call, { lease: lease.token });
process.stdout.write("running\n");
