-- reads: catalog
-- What it was worth that clusters closed for idling between `first_day` and `last_day`, one row: how many there were, of
-- how many that can be told, the dollars, the hours that it is held against and the clusters these are told from.
-- Each would have idled on as clusters did that nobody closed for it: by the median of how much longer than its timeout
-- those idled that did (at least `least` of them, ended in the `before_days` days before `first_day` or since), at what
-- its threads at the end cost an hour.
WITH ended AS (
    SELECT
        *,
        CAST(last_received_at AT TIME ZONE 'UTC' AS DATE) AS day,
        coalesce(reason, '') = $reason AS was_closed
    FROM catalog
    WHERE phase = 'closed' OR $now_s - epoch_ms(last_received_at) / 1000 > $missed * next_s
),
closed AS (
    SELECT
        cluster,
        idle_timeout_s,
        CASE WHEN thread_us > 0 AND n_threads > 0 THEN dollars / (thread_us / 3.6e9) * n_threads END AS hourly
    FROM ended
    WHERE was_closed AND day BETWEEN $first_day::DATE AND $last_day::DATE AND ($user::VARCHAR IS NULL OR "user" = $user)
),
left_alone AS (
    SELECT idle_s
    FROM ended
    WHERE NOT was_closed
      AND idle_s > 0
      AND day BETWEEN $first_day::DATE - $before_days::INTEGER AND $last_day::DATE
),
held AS (
    SELECT
        c.cluster,
        any_value(c.hourly) AS hourly,
        count(l.idle_s) AS n_alone,
        median(l.idle_s - c.idle_timeout_s) / 3600 AS longer_h
    FROM closed c LEFT JOIN left_alone l ON l.idle_s > c.idle_timeout_s
    GROUP BY c.cluster
)
SELECT
    count(*) AS n_clusters,
    count(*) FILTER (told) AS n_told,
    sum(hourly * longer_h) FILTER (told) AS dollars,
    median(longer_h) FILTER (told) AS longer_h,
    min(n_alone) FILTER (told) AS n_alone
FROM (SELECT *, hourly IS NOT NULL AND n_alone >= $least AS told FROM held)
