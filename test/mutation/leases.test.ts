import { keyFaults } from "./key-faults.ts";
import { leaseFaults } from "./lease-faults.ts";
import { expectFaultsNoticed } from "./noticed.ts";

expectFaultsNoticed({
  name: "leases",
  what: "leases, metadata and calls with an idempotency key",
  faults: [...leaseFaults, ...keyFaults],
  passesMin: 20,
});
