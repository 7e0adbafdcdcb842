"""Encoders as model folders: conversion, loading, read-outs. This file loads nothing heavy."""
