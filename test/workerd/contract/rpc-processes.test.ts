import { describeOverRpc } from "./over-rpc.ts";

describeOverRpc("processes");
