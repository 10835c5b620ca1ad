import { useQuery } from "@tanstack/react-query";

import { ask } from "./client";

/** Where the history of a registry is kept. */
export interface History {
  registry: string;
  url: string;
  isOpen: boolean;
  problem: string | null;
  isAdded: boolean;
}

export const HISTORIES = ["histories"] as const;

export const useHistories = () =>
  useQuery({
    queryKey: HISTORIES,
    queryFn: () => ask<History[]>("GET", "/histories"),
    refetchInterval: 15_000,
  });
