import { describeOverRpc } from "./over-rpc.ts";

describeOverRpc("leases");
