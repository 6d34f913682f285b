-- reads: groups, exceptions
-- Task groups of one cluster or of `clusters`, earliest first, dependencies by name; `computations` narrows to those
-- '<boot>-<no>'.
WITH mine AS (
    SELECT *
    FROM groups
    WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
      AND ($clusters::VARCHAR[] IS NULL OR cluster IN (SELECT unnest($clusters::VARCHAR[])))
),
edges AS (SELECT cluster, boot, no, unnest(dependencies) AS dependency FROM mine),
named AS (
    SELECT e.cluster, e.boot, e.no, list(d.name ORDER BY d.no) AS names
    FROM edges e
    JOIN mine d ON d.cluster = e.cluster AND d.boot = e.boot AND d.no = e.dependency
    GROUP BY e.cluster, e.boot, e.no
),
-- Dask forgets the state of a failed task with the task; its exception stays.
failed AS (
    SELECT cluster, boot, group_no AS no, capped(sum(count)) AS n_tasks_erred
    FROM exceptions
    GROUP BY cluster, boot, group_no
)
SELECT g.* REPLACE (coalesce(n.names, []) AS dependencies), coalesce(f.n_tasks_erred, 0) AS n_tasks_erred
FROM mine g
LEFT JOIN named n USING (cluster, boot, no)
LEFT JOIN failed f USING (cluster, boot, no)
WHERE $computations::VARCHAR[] IS NULL
   OR g.boot || '-' || g.computation IN (SELECT unnest($computations::VARCHAR[]))
ORDER BY g.boot, g.no
