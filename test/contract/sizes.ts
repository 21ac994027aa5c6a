/**
 * Owns the sizes that each Berth of the contract suite has, each with a part for the platform and one for a room.
 */
export const contractSizes =
  "small:instance=basic,processes=200 large:instance=standard-2,processes=2000";
