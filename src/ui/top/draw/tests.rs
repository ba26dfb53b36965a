//! Tests of the drawing.
