import { callFaults } from "./call-faults.ts";
import { expectFaultsNoticed } from "./noticed.ts";

expectFaultsNoticed({
  name: "calls",
  what: "the Directory, keys, handles, tenants, logs and repeats",
  faults: callFaults,
  passesMin: 8,
  wide: true,
});
