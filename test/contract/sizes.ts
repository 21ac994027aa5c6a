/** The sizes of every Berth of the contract suite, each with a part for Cloudflare and one for one machine. */
export const contractSizes =
  "small:instance=basic,processes=200 large:instance=standard-2,processes=2000";
