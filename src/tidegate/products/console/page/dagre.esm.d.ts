/** What the diagram's worker uses of dagre (`dagre.esm.js`, which is kept as it was published). */
export class Graph {
  constructor(options?: { multigraph?: boolean; compound?: boolean });
  setGraph(label: { rankdir: "LR" | "TB"; nodesep: number; edgesep: number; ranksep: number; acyclicer: "greedy" }): this;
  setDefaultEdgeLabel(label: () => object): this;
  setNode(name: string, label: { width: number; height: number }): this;
  setEdge(from: string, to: string): this;
  node(name: string): { x: number; y: number; width: number; height: number };
  graph(): { width: number; height: number };
}
export function layout(graph: Graph): void;
