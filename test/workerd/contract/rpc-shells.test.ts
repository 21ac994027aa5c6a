import { describeOverRpc } from "./over-rpc.ts";

describeOverRpc("shells");
