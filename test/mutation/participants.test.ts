import { expectFaultsNoticed } from "./noticed.ts";
import { participantFaults } from "./participant-faults.ts";

expectFaultsNoticed({
  name: "participants",
  what: "plan participants",
  faults: participantFaults,
  passesMin: 10,
});
