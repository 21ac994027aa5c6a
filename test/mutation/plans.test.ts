import { expectFaultsNoticed } from "./noticed.ts";
import { planFaults } from "./plan-faults.ts";

expectFaultsNoticed({ name: "plans", what: "plans", faults: planFaults, passesMin: 20 });
