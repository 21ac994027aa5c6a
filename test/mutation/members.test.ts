import { memberFaults } from "./member-faults.ts";
import { expectFaultsNoticed } from "./noticed.ts";

expectFaultsNoticed({
  name: "members",
  what: "members of plans",
  faults: memberFaults,
  passesMin: 10,
});
