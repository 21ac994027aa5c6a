import { expect, it } from "vitest";
import { unknownVariables } from "../../../container/launch/variables.js";

it("[O29] names variables that have no effect, and none of the server, the engine, the command or others", () => {
  const env = {
    ...{ BERTH_QUOTA: "*:sandboxes=1", BERTH_QUOTAS: "*:sandboxes=1", BERTH_PORT: "0" },
    ...{ BERTH_ENGINE_NETWORK: "none", BERTH_KEY: "x", HOME: "/", BERTH_PUBLIK_URL: "" },
  };
  expect(unknownVariables(env)).toEqual(["BERTH_QUOTA", "BERTH_PUBLIK_URL"]);
});
