//! Frees places for programs that should have more cores. These need places on one agent, so workers of other jobs
//! leave that agent first.
//!
//! This module does not decide how many workers a job should have.

use std::collections::BTreeMap;

use sdk::base::Time;

use super::Quality;
use super::entry::Entry;
use super::plan::newest_last;

/// Number of additional places that programs need on their agents, by agent.
pub(super) type PlacesByAgent = BTreeMap<String, u32>;

impl Quality {
    /// Returns the number of places of each agent, as far as is known: free ones and those of workers.
    pub(super) fn agent_places(&self) -> BTreeMap<String, u32> {
        let mut places: BTreeMap<String, u32> =
            self.free_places.iter().map(|(agent, room)| (agent.clone(), room.places)).collect();
        for worker in self.jobs.values().flat_map(|j| j.workers.values()) {
            let of_agent = places.entry(worker.agent.value.to_string()).or_default();
            *of_agent = of_agent.saturating_add(worker.places);
        }
        places
    }

    /// Returns the additional places that elastic programs need on their agents to have their target.
    pub(super) fn places_for_programs(&self) -> PlacesByAgent {
        let mut wanted = PlacesByAgent::new();
        for entry in self.jobs.values().filter(|e| e.is_to_grow()) {
            let Some(worker) = entry.workers.values().next() else { continue };
            let more = wanted.entry(worker.agent.value.to_string()).or_insert(0_u32);
            *more = more.saturating_add(entry.target.saturating_sub(worker.places));
        }
        wanted
    }

    /// Makes workers of other jobs leave the agents of programs that should grow, as far as other agents have places
    /// for their successors, or will have.
    pub(super) fn clear_places_for_programs(&mut self, now: Time) {
        let wanted = &self.reserved_places;
        let leaving = |agent: &str, here: bool| -> u32 {
            let leaving_workers = self.jobs.values().flat_map(|j| j.workers.values()).filter(|h| h.leaving.is_some());
            leaving_workers.filter(|h| (h.agent.value.as_str() == agent) == here).map(|h| h.places).sum()
        };
        let lacking: u32 = self.jobs.values().filter(|e| !e.is_program()).map(|e| e.lacks(now)).sum();
        let mut displaced: Vec<(String, u32)> = Vec::new();
        for (agent, places) in wanted {
            let room = |here: bool| -> u32 {
                let rooms = self.free_places.iter().filter(|(name, _)| (*name == agent) == here);
                rooms.map(|(_, room)| room.places).fold(0, u32::saturating_add)
            };
            let missing = places.saturating_sub(room(true).saturating_add(leaving(agent, true)));
            let elsewhere = room(false).saturating_add(leaving(agent, false)).saturating_sub(lacking);
            displaced.push((agent.clone(), missing.min(elsewhere)));
        }
        for (agent, places) in displaced.into_iter().filter(|(_, places)| *places > 0) {
            self.displace(&agent, places, now);
        }
    }

    /// Makes this many workers leave an agent, the newest first. Their jobs get others elsewhere.
    fn displace(&mut self, agent: &str, places: u32, now: Time) {
        let here = |e: &Entry| -> Vec<String> {
            let stays = e.workers.iter().filter(|(_, h)| h.leaving.is_none() && h.agent.value.as_str() == agent);
            stays.map(|(id, _)| id.clone()).collect()
        };
        let mut workers: Vec<String> = self.jobs.values().filter(|e| !e.is_program()).flat_map(here).collect();
        newest_last(&mut workers);
        for id in workers.into_iter().rev().take(places as usize) {
            let entry = self.job_of_worker.get(&id).and_then(|job| self.jobs.get_mut(job));
            if let Some(worker) = entry.and_then(|entry| entry.workers.get_mut(&id)) {
                (worker.leaving, worker.leaves_for_program) = (Some(now), true);
            }
        }
    }
}
